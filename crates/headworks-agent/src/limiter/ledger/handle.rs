//! A bucket as the uplink holds it, and what was counted in it.

use std::sync::{Arc, RwLockReadGuard};

use headworks_core::agent::InForce;
use headworks_core::bucket::{BucketKey, Counts};
use headworks_core::units::Moment;

use super::{Ledger, Stripes};
use crate::limiter::record::Record;

/// Reads what buckets have counted, each in full, wherever it was counted.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) stripes: RwLockReadGuard<'a, Stripes>,
}

impl Reader<'_> {
    /// What was counted in a record and its cells.
    pub(in crate::limiter) fn counts(&self, number: u32, record: &Record) -> Counts {
        let mut counts = record.counts();
        if record.is_pinned()
            && let Some(cells) = self.stripes.prepared.get(&number)
        {
            cells.iter().for_each(|cell| counts += cell.tally.counts());
        }
        if let Some(cell) = record.cell() {
            let cells = self.stripes.all.iter().filter_map(|stripe| stripe.peek(cell));
            cells.for_each(|cell| counts += cell.tally.counts());
        }
        counts
    }

    /// What was counted in the bucket of a handle.
    pub(crate) fn of(&self, handle: &Handle) -> Counts {
        let record = self.ledger.record(handle.number);
        record.map(|record| self.counts(handle.number, record)).unwrap_or_default()
    }
}

/// A bucket's record, as the uplink holds it.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(super) ledger: Arc<Ledger>,
    pub(super) number: u32,
    pub(super) life: u32,
}

impl Handle {
    fn record(&self) -> Option<&Record> {
        self.ledger.slab.get(self.number).filter(|record| record.life() == self.life)
    }

    /// The number of the record.
    pub(in crate::limiter) fn number(&self) -> u32 {
        self.number
    }

    /// Whose bucket it is; 0 if nobody's.
    pub(crate) fn owner(&self) -> u32 {
        self.record().map_or(0, Record::owner)
    }

    /// The bucket; `None` if it is gone.
    pub(crate) fn key(&self) -> Option<BucketKey> {
        self.ledger.key(self.record()?)
    }

    /// Puts in force what decisions on it go by.
    pub(crate) fn set(&self, in_force: InForce, now: Moment) {
        self.record().iter().for_each(|record| record.set(in_force, now));
    }

    /// What was counted in it so far.
    pub(crate) fn counts(&self) -> Counts {
        self.ledger.reader().of(self)
    }

    /// Whether no request finds it any more: its limit is gone, or it was forgotten.
    pub(crate) fn is_retired(&self) -> bool {
        self.record().is_none()
    }

    /// Whether its values are not tracked.
    pub(crate) fn is_away(&self) -> bool {
        self.record().is_some_and(Record::is_away)
    }

    /// From now on its values are tracked, or not.
    pub(crate) fn set_away(&self, away: bool) {
        if self.record().is_some_and(|record| record.set_away(away)) && away {
            self.ledger.begin_epoch();
        }
    }

    /// Whether a request asked for it since the last call.
    pub(crate) fn was_wanted(&self) -> bool {
        self.record().is_some_and(Record::was_wanted)
    }

    /// Whether a prepared request holds on to it.
    pub(crate) fn is_pinned(&self) -> bool {
        self.record().is_some_and(Record::is_pinned)
    }

    /// Whether threads count for themselves in it.
    pub(crate) fn is_hot(&self) -> bool {
        self.record().is_some_and(Record::is_hot)
    }

    /// Lets threads count for themselves in it, or not.
    pub(crate) fn set_hot(&self, hot: bool, now: Moment) {
        if hot {
            self.ledger.heat(self.number);
        } else {
            self.ledger.cool(self.number, now);
        }
    }
}
