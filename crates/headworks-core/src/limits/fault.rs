//! What is wrong with a limits file, in a form that tells its owner what to mend.

use std::fmt;

/// One fault of a limits file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in the line, from 1, in characters.
    pub column: usize,
    /// Where in the document: `limits[2].rate`; empty for the document itself.
    pub path: String,
    /// What is wrong, and what to do next where that is knowable.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// All faults of a limits file, in the order of their lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            let break_before = if i == 0 { "" } else { "\n" };
            write!(f, "{break_before}{fault}")?;
        }
        Ok(())
    }
}
