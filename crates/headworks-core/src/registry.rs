//! A node's own numbering of the buckets it knows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bucket::BucketKey;
use crate::message::BucketNumber;
use crate::numbers::NumberMap;

/// Buckets by key and by number. Numbers rise and are never given twice, so that a number heard late names the
/// bucket it always named, or none.
#[derive(Debug)]
pub struct Registry<T> {
    numbers: HashMap<Arc<BucketKey>, BucketNumber>,
    /// Each by itself: a table of them would have places for half as many more.
    buckets: NumberMap<BucketNumber, Box<(Arc<BucketKey>, T)>>,
    next: u32,
    room: usize,
    /// The number that was next when a bucket was forgotten for the first time.
    renewed_from: Option<u32>,
}

/// Tells each life of a bucket's counts from those before it that were forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    renewed_from: Option<u32>,
}

impl Lives {
    /// 0 for the first life of a key, and higher for each that follows.
    pub fn of(self, number: BucketNumber) -> u32 {
        if self.renewed_from.is_some_and(|first| number.0 >= first) { number.0 } else { 0 }
    }
}

impl<T: Default> Registry<T> {
    /// An empty registry for at most `room` buckets.
    pub fn with_room_for(room: usize) -> Self {
        Self { numbers: HashMap::new(), buckets: NumberMap::default(), next: 0, room, renewed_from: None }
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
        let key = Arc::new(key.clone());
        self.numbers.insert(key.clone(), number);
        self.buckets.insert(number, Box::new((key, T::default())));
        Some(number)
    }

    /// The number of a known bucket.
    pub fn number(&self, key: &BucketKey) -> Option<BucketNumber> {
        self.numbers.get(key).copied()
    }

    /// The key of a known number.
    pub fn key(&self, number: BucketNumber) -> Option<&BucketKey> {
        self.buckets.get(&number).map(|entry| &*entry.0)
    }

    /// Whether this number was given at some time, even if its bucket is gone.
    pub fn was_given(&self, number: BucketNumber) -> bool {
        number.0 < self.next
    }

    /// What is kept of a bucket.
    pub fn get(&self, number: BucketNumber) -> Option<&T> {
        self.buckets.get(&number).map(|entry| &entry.1)
    }

    /// What is kept of a bucket, to change it.
    pub fn get_mut(&mut self, number: BucketNumber) -> Option<&mut T> {
        self.buckets.get_mut(&number).map(|entry| &mut entry.1)
    }

    /// The numbers of all buckets, for those who change each in turn.
    pub fn numbers(&self) -> Vec<BucketNumber> {
        self.iter().map(|(number, ..)| number).collect()
    }

    /// All buckets, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (BucketNumber, &BucketKey, &T)> {
        self.buckets.iter().map(|(number, entry)| (*number, &*entry.0, &entry.1))
    }

    /// All buckets, in no order, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (BucketNumber, &BucketKey, &mut T)> {
        self.buckets.iter_mut().map(|(number, entry)| {
            let (key, bucket) = &mut **entry;
            (*number, &**key, bucket)
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Tells lives of buckets apart.
    pub fn lives(&self) -> Lives {
        Lives { renewed_from: self.renewed_from }
    }

    /// Forgets one bucket. Its number names nothing from now on.
    pub fn forget(&mut self, number: BucketNumber) -> Option<(BucketKey, T)> {
        let (key, bucket) = *self.buckets.remove(&number)?;
        self.numbers.remove(&*key);
        self.renewed_from.get_or_insert(self.next);
        Some((Arc::unwrap_or_clone(key), bucket))
    }

    /// Forgets the buckets that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(&BucketKey, &T) -> bool) {
        let before = self.buckets.len();
        self.buckets.retain(|_, entry| keep(&entry.0, &entry.1));
        if self.buckets.len() < before {
            self.renewed_from.get_or_insert(self.next);
        }
        let buckets = &self.buckets;
        self.numbers.retain(|_, number| buckets.contains_key(number));
    }
}
