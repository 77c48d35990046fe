//! Who counts where: threads for themselves in hot buckets, prepared requests in cells of their own, all others together.

use std::sync::atomic::{AtomicI64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, PoisonError};

use headworks_core::units::Moment;

use super::{COOLS, Ledger, Reader, held};
use crate::limiter::cells::{Cell, MOST_HOT, Stripe};
use crate::limiter::slab::Held;
use crate::limiter::table::Table;

impl Ledger {
    /// The cells of a thread that begins to decide.
    pub(in crate::limiter) fn join(&self) -> (Arc<Stripe>, Arc<AtomicI64>, Arc<Table>) {
        let table = self.table.load_full();
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        let stripe = stripes.free.pop().unwrap_or_else(|| {
            let made = Arc::<Stripe>::default();
            stripes.all.push(made.clone());
            made
        });
        self.threads.fetch_add(1, Relaxed);
        (stripe, self.threads.clone(), table)
    }

    /// A thread is gone: another may go on in its cells.
    pub(in crate::limiter) fn part(&self, stripe: &Arc<Stripe>) {
        self.threads.fetch_sub(1, Relaxed);
        self.stripes.write().unwrap_or_else(PoisonError::into_inner).free.push(stripe.clone());
    }

    /// Reads what was counted; nothing is brought in meanwhile.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { ledger: self, stripes: self.stripes.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// From now on threads count for themselves in this bucket, if there are cells left.
    pub(in crate::limiter) fn heat(&self, number: u32) {
        let mut heat = held(&self.heat);
        let Some(record) = self.slab.get(number).filter(|record| record.cell().is_none()) else { return };
        let next = (heat.next < MOST_HOT).then_some(heat.next);
        let Some(cell) = heat.free.pop().or(next) else { return };
        heat.next = heat.next.max(cell + 1);
        record.heat(cell);
    }

    /// From now on they count together again.
    pub(in crate::limiter) fn cool(&self, number: u32, now: Moment) {
        if let Some(record) = self.slab.get(number).filter(|record| record.is_hot()) {
            record.cool();
            held(&self.heat).cooling.push_back((now, number));
        }
    }

    /// Brings in what is in cells where nobody counts any more.
    pub(super) fn bring_in(&self, now: Moment) {
        let mut heat = held(&self.heat);
        if heat.cooling.front().is_none_or(|(since, _)| now.since(*since) < COOLS) {
            return;
        }
        let stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, number)) = heat.cooling.front().copied() {
            if now.since(since) < COOLS {
                return;
            }
            heat.cooling.pop_front();
            let Some(record) = self.slab.get(number) else { continue };
            let Some(cell) = record.cell() else { continue };
            for cell in stripes.all.iter().filter_map(|stripe| stripe.peek(cell)) {
                record.bring_in(cell);
                cell.clear();
            }
            record.leave_cell();
            heat.free.push(cell);
        }
    }

    /// A prepared request counts in a cell of its own, and holds on to the record: it is not forgotten.
    /// `None` if it is no longer these buckets'.
    pub(in crate::limiter) fn lend(&self, number: u32, owner: u32) -> Option<(Held, Arc<Cell>)> {
        let held = self.slab.hold(number)?;
        let cell = Arc::<Cell>::default();
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        let others = stripes.prepared.get(&number).is_some_and(|cells| !cells.is_empty());
        if !held.record().pin(owner) {
            if !others {
                held.record().unpin();
            }
            return None;
        }
        stripes.prepared.entry(number).or_default().push(cell.clone());
        self.threads.fetch_add(1, Relaxed);
        Some((held, cell))
    }

    /// What prepared requests have worked out in an earlier one is old.
    #[inline(always)]
    pub(in crate::limiter) fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
    }

    /// Another begins.
    pub(in crate::limiter) fn begin_epoch(&self) {
        self.epoch.fetch_add(1, Release);
    }

    /// The record is nobody's any more. What is still counted in cells that were lent is of no bucket.
    pub(super) fn recall(&self, number: u32) {
        self.begin_epoch();
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        let cells = stripes.prepared.remove(&number).unwrap_or_default();
        if let Some(record) = self.slab.get(number) {
            cells.iter().for_each(|cell| record.bring_in(cell));
        }
    }

    /// It does so no longer. Of a record that is another bucket's by now there is nothing to give back.
    pub(in crate::limiter) fn give_back(&self, number: u32, cell: &Arc<Cell>) {
        self.threads.fetch_sub(1, Relaxed);
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        let Some(cells) = stripes.prepared.get_mut(&number) else { return };
        let Some(place) = cells.iter().position(|lent| Arc::ptr_eq(lent, cell)) else { return };
        cells.swap_remove(place);
        let is_last = cells.is_empty();
        if let Some(record) = self.slab.get(number) {
            record.bring_in(cell);
            if is_last {
                record.unpin();
            }
        }
        if is_last {
            stripes.prepared.remove(&number);
        }
    }
}
