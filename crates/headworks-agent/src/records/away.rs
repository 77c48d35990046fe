//! Records whose values the parents do not track: their requests count in the bucket that all such values share.
//!
//! They stay in the limiter while they are in use, so that their requests need not ask each time; and ask again after a
//! while, since a place may be free by then.

use std::time::Duration;

use headworks_core::agent::{Agent as State, Untracked};
use headworks_core::bucket::Counts;
use headworks_core::message::BucketNumber;
use headworks_core::units::Moment;

use super::Records;
use crate::limiter::{Handle, Limiter};

/// Time between two questions for a place.
const ASKS_AFTER: Duration = Duration::from_secs(60);
/// What is not wanted for so long gives up its place here.
const IDLE: Duration = Duration::from_secs(60);

/// One record that is not tracked.
#[derive(Debug)]
pub(super) struct Away {
    record: Handle,
    /// What the shared bucket has taken over of its counts.
    taken_over: Counts,
    since: Moment,
    wanted: Moment,
}

impl Records {
    /// The parents do not track these buckets. What they have counted belongs to the bucket that all such values share, unless
    /// a parent has taken it in.
    pub(crate) fn turn_away(&mut self, untracked: &[Untracked], limiter: &Limiter, now: Moment) {
        for untracked in untracked {
            let Some(tracked) = self.tracked.remove(&untracked.bucket) else { continue };
            self.leaving -= usize::from(tracked.leaving.is_some());
            let Some(record) = tracked.live else { continue };
            limiter.set_full(&record, true);
            record.set_away(true);
            record.set_hot(false, now);
            let taken_over = if untracked.was_counted { record.counts() } else { tracked.elsewhere };
            self.away.push(Away { taken_over, record, since: now, wanted: now });
        }
    }

    /// The parents track these buckets.
    pub(crate) fn place(&self, numbers: &[BucketNumber], limiter: &Limiter) {
        let live = numbers.iter().filter_map(|number| self.tracked.get(number)?.live.as_ref());
        for record in live.filter(|record| record.is_away()) {
            record.set_away(false);
            limiter.set_full(record, false);
        }
    }

    pub(super) fn tend_away(&mut self, state: &mut State, limiter: &Limiter, now: Moment) {
        for mut away in std::mem::take(&mut self.away) {
            if away.record.is_retired() {
                continue;
            }
            self.take_over(&mut away, state);
            if away.record.was_wanted() {
                away.wanted = now;
            }
            if now.since(away.wanted) >= IDLE && !away.record.is_pinned() {
                limiter.forget(&away.record, now);
            } else if now.since(away.since) < ASKS_AFTER || !self.asks(&away, state, now) {
                self.away.push(away);
            }
        }
    }

    /// What a request counted that had found the record before it was turned away.
    fn take_over(&mut self, away: &mut Away, state: &State) {
        let counts = away.record.counts();
        if counts == away.taken_over {
            return;
        }
        let rest = away.record.key().and_then(|key| state.rest(&key.limit));
        if let Some(rest) = rest.and_then(|rest| self.tracked.get_mut(&rest)) {
            rest.before += counts.since(away.taken_over);
            away.taken_over = counts;
        }
    }

    /// Asks for a place once more; its requests go on counting elsewhere until there is one.
    fn asks(&mut self, away: &Away, state: &mut State, now: Moment) -> bool {
        let Some(number) = away.record.key().and_then(|key| state.open(&key, now)) else { return false };
        self.insert(number, away.record.clone());
        if let Some(tracked) = self.tracked.get_mut(&number) {
            tracked.elsewhere = away.taken_over;
        }
        true
    }
}
