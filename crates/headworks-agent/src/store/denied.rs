//! Buckets that are known to be spent: a flood on them is answered without asking the store.
//!
//! The script says of each bucket how long it will have no room for the same cost, whether it just refused that cost or
//! charged the last that was there. Until then the answer is known. When that time is over, requests of one agent for
//! the bucket go one by one, and each learns from the one before: without that, all those in flight would ask at once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headworks_core::units::Moment;
use tokio::sync::OwnedMutexGuard;

/// Longest that a bucket is believed to be spent: somebody may delete its key, and waits no longer than this.
const LONGEST: Duration = Duration::from_secs(1);
/// How long a spent bucket is remembered after it may have room again, so that requests go one by one.
const LINGER: Duration = Duration::from_secs(1);
/// Parts that each have a lock.
const PARTS: usize = 32;
/// Most that the keys of a part take, in bytes: 16 MiB over all parts.
const MOST_BYTES: usize = (16 << 20) / PARTS;
/// What an entry takes beside its key.
const ENTRY_BYTES: usize = 160;

/// What is known of buckets.
#[derive(Debug, Default)]
pub(super) struct Denied {
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
    answered: AtomicU64,
}

#[derive(Debug, Default)]
struct Part {
    entries: HashMap<Box<[u8]>, Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// By which rules: others may have room.
    generation: u64,
    /// What does not fit.
    cost: u64,
    left: u64,
    /// Until when that is sure.
    until: Moment,
    /// When it will fit.
    fits: Moment,
    gate: Arc<tokio::sync::Mutex<()>>,
}

/// What is known of a bucket.
#[derive(Debug)]
pub(super) enum Known {
    Nothing,
    /// It has no room for that cost.
    Denied {
        left: u64,
        wait: Duration,
    },
    /// It was spent a moment ago: who asks should let others finish first, and look again.
    Perhaps(Gate),
}

/// Lets one pass at a time.
#[derive(Debug)]
pub(super) struct Gate(Arc<tokio::sync::Mutex<()>>);

impl Gate {
    /// Waits until nobody else is inside.
    pub(super) async fn pass(self) -> OwnedMutexGuard<()> {
        self.0.lock_owned().await
    }
}

impl Denied {
    fn part(&self, name: &[u8]) -> MutexGuard<'_, Part> {
        #[allow(clippy::cast_possible_truncation, reason = "a part is chosen by any bits")]
        let part = self.hasher.hash_one(name) as usize % PARTS;
        lock(&self.parts[part])
    }

    pub(super) fn look(&self, name: &[u8], generation: u64, cost: u64, now: Moment) -> Known {
        let part = self.part(name);
        let same = |entry: &&Entry| entry.generation == generation && entry.cost == cost;
        let Some(entry) = part.entries.get(name).filter(same) else { return Known::Nothing };
        if now < entry.until {
            self.answered.fetch_add(1, Relaxed);
            return Known::Denied { left: entry.left, wait: entry.fits.since(now) };
        }
        Known::Perhaps(Gate(entry.gate.clone()))
    }

    /// Takes in what the store said: how long this cost will not fit, if it does not.
    pub(super) fn learn(
        &self,
        name: &[u8],
        generation: u64,
        cost: u64,
        left: u64,
        wait: Duration,
        now: Moment,
    ) {
        let mut part = self.part(name);
        if wait.is_zero() {
            if part.entries.get(name).is_some_and(|entry| entry.cost <= cost) {
                part.forget(name);
            }
            return;
        }
        let (until, fits) = (now + wait.min(LONGEST), now + wait);
        match part.entries.get_mut(name) {
            Some(entry) => {
                (entry.generation, entry.cost, entry.left) = (generation, cost, left);
                (entry.until, entry.fits) = (until, fits);
            }
            None => part.add(name, Entry { generation, cost, left, until, fits, gate: Arc::default() }),
        }
    }

    pub(super) fn sweep(&self, now: Moment) {
        for part in &self.parts {
            let mut part = lock(part);
            let Part { entries, bytes } = &mut *part;
            entries.retain(|name, entry| {
                let stays = now < entry.until + LINGER;
                *bytes -= if stays { 0 } else { name.len() + ENTRY_BYTES };
                stays
            });
            if entries.len() < entries.capacity() / 8 {
                entries.shrink_to(entries.len() * 2);
            }
        }
    }

    /// Times that the answer was known here.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }
}

impl Part {
    /// Nothing is pushed out: what is not remembered is asked.
    fn add(&mut self, name: &[u8], entry: Entry) {
        let bytes = self.bytes + name.len() + ENTRY_BYTES;
        if bytes <= MOST_BYTES {
            self.bytes = bytes;
            self.entries.insert(name.into(), entry);
        }
    }

    fn forget(&mut self, name: &[u8]) {
        if self.entries.remove(name).is_some() {
            self.bytes -= name.len() + ENTRY_BYTES;
        }
    }
}

/// What a thread that panicked left behind is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(ms))
    }

    fn wait_of(known: &Known) -> Option<u128> {
        match known {
            Known::Denied { wait, .. } => Some(wait.as_millis()),
            _ => None,
        }
    }

    #[test]
    fn a_spent_bucket_is_known_until_it_has_room_and_only_that_bucket_by_those_rules_for_that_cost() {
        let denied = Denied::default();
        denied.learn(b"a", 1, 2, 0, Duration::from_millis(100), at(0));
        assert_eq!(wait_of(&denied.look(b"a", 1, 2, at(40))), Some(60));
        assert_eq!(denied.answered(), 1);
        for (name, generation, cost) in [(b"b", 1, 2), (b"a", 2, 2), (b"a", 1, 1), (b"a", 1, 3)] {
            assert!(matches!(denied.look(name, generation, cost, at(40)), Known::Nothing));
        }
        assert!(matches!(denied.look(b"a", 1, 2, at(100)), Known::Perhaps(_)));
        denied.learn(b"a", 1, 2, 5, Duration::ZERO, at(100));
        assert!(matches!(denied.look(b"a", 1, 2, at(100)), Known::Nothing));
    }

    #[test]
    fn nothing_is_sure_for_longer_than_a_second_though_the_wait_is_told_whole() {
        let denied = Denied::default();
        denied.learn(b"a", 1, 1, 0, Duration::from_secs(3600), at(0));
        assert_eq!(wait_of(&denied.look(b"a", 1, 1, at(999))), Some(3_599_001));
        assert!(matches!(denied.look(b"a", 1, 1, at(1000)), Known::Perhaps(_)));
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let denied = Denied::default();
        let long = "x".repeat(4000);
        for i in 0..10_000 {
            denied.learn(format!("{i}{long}").as_bytes(), 1, 1, 0, Duration::from_secs(1), at(0));
        }
        let bytes = |denied: &Denied| denied.parts.iter().map(|part| lock(part).bytes).sum::<usize>();
        assert!(bytes(&denied) > 8 << 20 && bytes(&denied) <= 16 << 20, "{}", bytes(&denied));
        denied.sweep(at(1999));
        assert!(bytes(&denied) > 8 << 20);
        denied.sweep(at(2000));
        assert_eq!(bytes(&denied), 0);
    }

    #[tokio::test]
    async fn those_who_come_when_it_may_have_room_go_one_by_one() {
        let denied = Denied::default();
        denied.learn(b"a", 1, 1, 0, Duration::from_millis(1), at(0));
        let gate = || match denied.look(b"a", 1, 1, at(5)) {
            Known::Perhaps(gate) => gate,
            other => panic!("{other:?}"),
        };
        let inside = gate().pass().await;
        let mut waiting = Box::pin(gate().pass());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(inside);
        assert!(futures_util::poll!(&mut waiting).is_ready());
    }
}
