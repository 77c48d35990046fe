//! A node's own numbering of the buckets it knows.

use std::collections::HashMap;

use crate::bucket::BucketKey;
use crate::message::BucketNumber;
use crate::numbers::NumberMap;

/// Buckets by key and by number. Numbers rise and are never given twice, so that a number heard late names the
/// bucket it always named, or none.
#[derive(Debug)]
pub struct Registry<T> {
    numbers: HashMap<BucketKey, BucketNumber>,
    buckets: NumberMap<BucketNumber, (BucketKey, T)>,
    next: u32,
    room: usize,
}

impl<T: Default> Registry<T> {
    /// An empty registry for at most `room` buckets.
    pub fn with_room_for(room: usize) -> Self {
        Self { numbers: HashMap::new(), buckets: NumberMap::default(), next: 0, room }
    }

    /// The number of a bucket, new or known; `None` when there is no room for another.
    pub fn intern(&mut self, key: &BucketKey) -> Option<BucketNumber> {
        if let Some(number) = self.numbers.get(key) {
            return Some(*number);
        }
        if self.buckets.len() >= self.room || self.next == u32::MAX {
            return None;
        }
        let number = BucketNumber(self.next);
        self.next += 1;
        self.numbers.insert(key.clone(), number);
        self.buckets.insert(number, (key.clone(), T::default()));
        Some(number)
    }

    /// The number of a known bucket.
    pub fn number(&self, key: &BucketKey) -> Option<BucketNumber> {
        self.numbers.get(key).copied()
    }

    /// The key of a known number.
    pub fn key(&self, number: BucketNumber) -> Option<&BucketKey> {
        self.buckets.get(&number).map(|(key, _)| key)
    }

    /// Whether this number was given at some time, even if its bucket is gone.
    pub fn was_given(&self, number: BucketNumber) -> bool {
        number.0 < self.next
    }

    /// What is kept of a bucket.
    pub fn get(&self, number: BucketNumber) -> Option<&T> {
        self.buckets.get(&number).map(|(_, bucket)| bucket)
    }

    /// What is kept of a bucket, to change it.
    pub fn get_mut(&mut self, number: BucketNumber) -> Option<&mut T> {
        self.buckets.get_mut(&number).map(|(_, bucket)| bucket)
    }

    /// The numbers of all buckets, for those who change each in turn.
    pub fn numbers(&self) -> Vec<BucketNumber> {
        self.iter().map(|(number, ..)| number).collect()
    }

    /// All buckets, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (BucketNumber, &BucketKey, &T)> {
        self.buckets.iter().map(|(number, (key, bucket))| (*number, key, bucket))
    }

    /// All buckets, in no order, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (BucketNumber, &BucketKey, &mut T)> {
        self.buckets.iter_mut().map(|(number, (key, bucket))| (*number, &*key, bucket))
    }

    /// Forgets the buckets that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(&BucketKey, &T) -> bool) {
        self.buckets.retain(|_, (key, bucket)| keep(key, bucket));
        let buckets = &self.buckets;
        self.numbers.retain(|_, number| buckets.contains_key(number));
    }
}
