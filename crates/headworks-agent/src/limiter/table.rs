//! The index of records: from the hash of an identity to the numbers of the records that may have it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};

/// An entry of what is gone: whoever looks for what is behind it walks on.
const GONE: u64 = u32::MAX as u64;
const FREE: u64 = 0;

/// Eight bytes a slot: the hash, and the number of a record plus one. Read without a lock while one thread at a time writes.
///
/// One that is full is superseded by another with room for what is still there. Whoever still reads the old one finds there what
/// was there; what is gone the record itself tells, and who finds nothing has to look into the latest.
#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[AtomicU64]>,
    superseded: AtomicBool,
}

impl Table {
    /// With room for so many entries before it is full.
    pub(super) fn with_room_for(entries: usize) -> Self {
        let slots = (2 * entries).next_power_of_two().max(64);
        Self { slots: (0..slots).map(|_| AtomicU64::new(FREE)).collect(), superseded: AtomicBool::new(false) }
    }

    /// Entries, those that are gone included, from which it is full: with three quarters in use a look-up still reads few.
    pub(super) fn most(&self) -> usize {
        self.slots.len() / 4 * 3
    }

    /// What is looked for, among the records with this hash: the first that `is_it` says something of by its number.
    #[inline(always)]
    pub(super) fn find<T>(&self, hash: u32, is_it: impl Fn(u32) -> Option<T>) -> Option<T> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots.get(at)?.load(Acquire);
            if slot == FREE {
                return None;
            }
            if slot >> 32 == u64::from(hash)
                && let Some(number) = number_of(slot)
                && let Some(found) = is_it(number)
            {
                return Some(found);
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether there is a later one.
    pub(super) fn is_superseded(&self) -> bool {
        self.superseded.load(Acquire)
    }

    /// From now on there is.
    pub(super) fn supersede(&self) {
        self.superseded.store(true, Release);
    }

    /// Enters a record; the caller has room, and is the only one that writes.
    pub(super) fn insert(&self, hash: u32, number: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].load(Acquire) != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at].store(u64::from(hash) << 32 | u64::from(number + 1), Release);
    }

    /// Takes a record out; whether it was there.
    pub(super) fn remove(&self, hash: u32, number: u32) -> bool {
        let mask = self.slots.len() - 1;
        let wanted = u64::from(hash) << 32 | u64::from(number + 1);
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at].load(Acquire) {
                FREE => return false,
                slot if slot == wanted => {
                    self.slots[at].store(u64::from(hash) << 32 | GONE, Release);
                    return true;
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// A table with the entries that are still there, and as much room again as they take.
    pub(super) fn renewed(&self, live: usize) -> Table {
        let next = Table::with_room_for(live.max(32) * 2);
        for slot in self.slots.iter().map(|slot| slot.load(Acquire)) {
            if let Some(number) = number_of(slot) {
                #[allow(clippy::cast_possible_truncation, reason = "the upper half")]
                next.insert((slot >> 32) as u32, number);
            }
        }
        next
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half")]
fn number_of(slot: u64) -> Option<u32> {
    match slot & u64::from(u32::MAX) {
        FREE | GONE => None,
        number => Some(number as u32 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn finds_what_is_in_it_and_nothing_that_is_gone(
            steps in prop::collection::vec((0u32..40, any::<bool>()), 1..300), spread in 0u32..64,
        ) {
            // Few hashes for many numbers, and some that differ in their upper halves alone.
            let hash_of = |number: u32| ((number % 7) << 20) | ((number * spread) % 5);
            let (mut table, mut model, mut entered) = (Table::with_room_for(8), HashMap::new(), 0);
            for (number, enters) in steps {
                let hash = hash_of(number);
                if enters && model.insert(number, hash).is_none() {
                    if entered >= table.most() {
                        table = table.renewed(model.len());
                        entered = model.len();
                    }
                    table.insert(hash, number);
                    entered += 1;
                } else if !enters {
                    prop_assert_eq!(table.remove(hash, number), model.remove(&number).is_some());
                }
                for number in 0..40 {
                    let found = table.find(hash_of(number), |found| (found == number).then_some(()));
                    prop_assert_eq!(found.is_some(), model.contains_key(&number));
                }
            }
        }
    }
}
