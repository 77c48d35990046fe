//! Records by their numbers, at places that they keep for ever: what a look-up found stays what it was while a decision uses it.

use std::sync::OnceLock;

use super::record::Record;

/// Records in the first chunk; each chunk has twice as many as the one before, up to [`LARGEST`].
const FIRST: usize = 64;
const LARGEST: usize = 4096;
/// Chunks that are smaller than the largest, and the records in them.
const GROWING: usize = (LARGEST / FIRST).ilog2() as usize;
const IN_GROWING: usize = LARGEST - FIRST;
/// Most records: a thousand thousand buckets and as many that are on their way out.
const MOST_CHUNKS: usize = 512;

/// Where the records of a limiter lie.
#[derive(Debug)]
pub(super) struct Slab {
    chunks: Box<[OnceLock<Box<[Record]>>]>,
}

impl Default for Slab {
    fn default() -> Self {
        Self { chunks: (0..MOST_CHUNKS).map(|_| OnceLock::new()).collect() }
    }
}

impl Slab {
    /// The record of this number, if there is one.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Record> {
        let (chunk, at) = place(number);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// The same; makes the records around it, if there are none yet. `None` if there is no room for it.
    pub(super) fn make(&self, number: u32) -> Option<&Record> {
        let (chunk, at) = place(number);
        let size = if chunk < GROWING { FIRST << chunk } else { LARGEST };
        let made = self.chunks.get(chunk)?.get_or_init(|| (0..size).map(|_| Record::default()).collect());
        made.get(at)
    }
}

/// The chunk of a number, and its place there.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let number = number as usize;
    if number < IN_GROWING {
        let from_first = number + FIRST;
        let chunk = (from_first / FIRST).ilog2() as usize;
        (chunk, from_first - (FIRST << chunk))
    } else {
        let number = number - IN_GROWING;
        (GROWING + number / LARGEST, number % LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for number in 0..50_000 {
            assert_eq!(place(number), expected, "{number}");
            let size = if expected.0 < GROWING { FIRST << expected.0 } else { LARGEST };
            expected =
                if expected.1 + 1 == size { (expected.0 + 1, 0) } else { (expected.0, expected.1 + 1) };
        }
        let slab = Slab::default();
        assert!(slab.get(70).is_none());
        assert!(slab.make(70).is_some() && slab.get(70).is_some());
        assert!(slab.make(u32::MAX).is_none());
    }
}
