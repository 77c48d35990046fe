//! From the text of a limits file to checked limits.

use super::{Faults, LimitSet};

/// Reads a limits file whole: either every limit is sound, or all its faults come back together.
pub fn parse(_text: &str) -> Result<LimitSet, Faults> {
    Err(Faults(Vec::new()))
}
