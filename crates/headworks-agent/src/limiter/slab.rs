//! Records by their numbers, at places that they keep for ever: what a look-up found stays what it was while a decision uses it.

use std::sync::{Arc, OnceLock};

use super::record::Record;

/// Records that lie together, and come to be together.
const CHUNK: usize = 1024;
/// A thousand thousand buckets and as many that are on their way out.
const MOST_CHUNKS: usize = 2048;

type Chunk = Arc<[Record; CHUNK]>;

/// Where the records of a limiter lie.
#[derive(Debug)]
pub(super) struct Slab {
    chunks: Box<[OnceLock<Chunk>]>,
}

impl Default for Slab {
    fn default() -> Self {
        Self { chunks: (0..MOST_CHUNKS).map(|_| OnceLock::new()).collect() }
    }
}

impl Slab {
    /// The record of this number, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&Record> {
        let chunk = self.chunks.get(number as usize / CHUNK)?.get()?;
        Some(&chunk[number as usize % CHUNK])
    }

    /// The same, for who looks at it again and again.
    pub(super) fn hold(&self, number: u32) -> Option<Held> {
        let chunk = self.chunks.get(number as usize / CHUNK)?.get()?.clone();
        Some(Held { chunk, at: number as usize % CHUNK })
    }

    /// The same; makes the records around it, if there are none yet. `None` if there is no room for it.
    pub(super) fn make(&self, number: u32) -> Option<&Record> {
        let chunk = self.chunks.get(number as usize / CHUNK)?;
        Some(&chunk.get_or_init(new_chunk)[number as usize % CHUNK])
    }
}

/// A record that is at hand: without a way to go.
#[derive(Clone, Debug)]
pub(super) struct Held {
    chunk: Chunk,
    at: usize,
}

impl Held {
    #[inline(always)]
    pub(super) fn record(&self) -> &Record {
        &self.chunk[self.at % CHUNK]
    }
}

/// Made one by one on the heap: the whole is too large for a stack.
fn new_chunk() -> Chunk {
    let records: Arc<[Record]> = (0..CHUNK).map(|_| Record::default()).collect();
    records.try_into().unwrap_or_else(|_| unreachable!("there are as many as a chunk has"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own_and_keeps_it() {
        let slab = Slab::default();
        assert!(slab.get(1500).is_none());
        let one = std::ptr::from_ref(slab.make(1500).unwrap());
        assert!(slab.get(1024).is_some() && slab.get(1023).is_none());
        assert_ne!(std::ptr::from_ref(slab.make(1500 + 1024).unwrap()), one);
        assert_eq!(std::ptr::from_ref(slab.get(1500).unwrap()), one);
        assert!(slab.make(u32::MAX).is_none());
    }
}
