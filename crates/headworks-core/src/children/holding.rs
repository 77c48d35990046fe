//! What one child holds, by the parent's numbers.
//!
//! A child tells its buckets in the same order again and again, so each is looked for where the one before was found: a
//! report of a thousand buckets reads memory from one end to the other, and looks nothing up.

use super::Held;
use crate::message::BucketNumber;
use crate::numbers::NumberMap;

/// The buckets of one child.
#[derive(Debug, Default)]
pub(super) struct Holding {
    entries: Vec<(BucketNumber, Held)>,
    places: NumberMap<BucketNumber, u32>,
    /// Where the next one is expected.
    next: usize,
    mark: u64,
}

impl Holding {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The same for two children that hold the same buckets, and for no others.
    pub(super) fn mark(&self) -> (usize, u64) {
        (self.entries.len(), self.mark)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (BucketNumber, &Held)> {
        self.entries.iter().map(|(number, held)| (*number, held))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (BucketNumber, &mut Held)> {
        self.entries.iter_mut().map(|(number, held)| (*number, held))
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = BucketNumber> {
        self.entries.iter().map(|(number, _)| *number)
    }

    pub(super) fn contains(&self, number: BucketNumber) -> bool {
        self.places.contains_key(&number)
    }

    pub(super) fn get(&self, number: BucketNumber) -> Option<&Held> {
        Some(&self.entries[*self.places.get(&number)? as usize].1)
    }

    pub(super) fn get_mut(&mut self, number: BucketNumber) -> Option<&mut Held> {
        let place = self.find(number)?;
        Some(&mut self.entries[place].1)
    }

    fn find(&mut self, number: BucketNumber) -> Option<usize> {
        let is_at = |place: usize| self.entries.get(place).is_some_and(|(known, _)| *known == number);
        let place = if is_at(self.next) {
            self.next
        } else if is_at(self.next.wrapping_sub(1)) {
            // The one that was found last.
            return Some(self.next - 1);
        } else {
            *self.places.get(&number)? as usize
        };
        self.next = place + 1;
        Some(place)
    }

    /// Makes room for exactly so many more: most children tell in their first report all that they will ever hold.
    pub(super) fn make_room(&mut self, more: usize) {
        if self.entries.is_empty() {
            self.entries.reserve_exact(more);
        }
    }

    /// Adds one that is not held yet.
    pub(super) fn insert(&mut self, number: BucketNumber, held: Held) -> &mut Held {
        let place = self.entries.len();
        self.places.insert(number, u32::try_from(place).unwrap_or(u32::MAX));
        self.mark = self.mark.wrapping_add(mixed(number));
        self.next = place + 1;
        self.entries.push((number, held));
        &mut self.entries[place].1
    }

    pub(super) fn remove(&mut self, number: BucketNumber) -> Option<Held> {
        let place = self.places.remove(&number)? as usize;
        let (_, held) = self.entries.swap_remove(place);
        if let Some((moved, _)) = self.entries.get(place) {
            self.places.insert(*moved, u32::try_from(place).unwrap_or(u32::MAX));
        }
        self.mark = self.mark.wrapping_sub(mixed(number));
        Some(held)
    }

    /// Removes those that `keep` does not want.
    pub(super) fn retain(&mut self, keep: impl Fn(BucketNumber) -> bool) {
        let gone: Vec<BucketNumber> = self.numbers().filter(|number| !keep(*number)).collect();
        for number in gone {
            self.remove(number);
        }
    }
}

/// Numbers are given one after the other; their sums would be the same for many sets.
fn mixed(number: BucketNumber) -> u64 {
    let mixed = (u64::from(number.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(numbers: &[u32]) -> Holding {
        let mut holding = Holding::default();
        for number in numbers {
            holding.insert(BucketNumber(*number), Held::default()).life = *number;
        }
        holding
    }

    #[test]
    fn finds_each_in_any_order_also_after_others_are_gone() {
        let mut holding = holding(&[5, 2, 9, 7]);
        holding.remove(BucketNumber(2));
        for number in [5, 7, 9, 9, 7, 5] {
            assert_eq!(holding.get_mut(BucketNumber(number)).map(|held| held.life), Some(number));
            assert_eq!(holding.get(BucketNumber(number)).map(|held| held.life), Some(number));
        }
        assert!(holding.get_mut(BucketNumber(2)).is_none() && !holding.contains(BucketNumber(2)));
    }

    #[test]
    fn the_mark_tells_sets_apart_whatever_their_order() {
        let mut other = holding(&[9, 2, 5, 4]);
        assert_ne!(holding(&[2, 5, 9]).mark(), other.mark());
        other.remove(BucketNumber(4));
        assert_eq!(holding(&[2, 5, 9]).mark(), other.mark());
        assert_ne!(holding(&[1, 4]).mark(), holding(&[2, 3]).mark());
    }
}
