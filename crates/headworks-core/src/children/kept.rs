//! How much a parent remembers: what has to stay bounded, whoever comes and goes.

use super::Children;

/// Entries that a parent keeps of its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Children attached.
    pub children: usize,
    /// Buckets of all of them.
    pub held: usize,
    /// Buckets numbered.
    pub buckets: usize,
    /// Children that left, and whose counts are remembered.
    pub departed: usize,
}

impl Children {
    /// What is kept now.
    pub fn kept(&self) -> Kept {
        Kept {
            children: self.children.len(),
            held: self.children.values().map(|child| child.held.len()).sum(),
            buckets: self.buckets.iter().count(),
            departed: self.departed.len(),
        }
    }
}
