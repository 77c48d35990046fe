//! What is wrong with a limits file, in a form that tells its owner what to mend.

use std::fmt;

/// Faults that are told one by one; a file with more is told how many more.
const LISTED: usize = 100;
/// Faults kept until they are sorted and cut, so that a hostile file costs no memory for faults nobody reads.
const KEPT: usize = 1000;

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

/// The faults of a limits file, in the order of their lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults {
    listed: Vec<Fault>,
    more: usize,
}

impl Faults {
    /// The first hundred faults.
    pub fn listed(&self) -> &[Fault] {
        &self.listed
    }

    /// How many faults there are beyond those listed.
    pub fn more(&self) -> usize {
        self.more
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.listed.iter().enumerate() {
            let break_before = if i == 0 { "" } else { "\n" };
            write!(f, "{break_before}{fault}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// Faults while they are being found.
#[derive(Debug, Default)]
pub(super) struct FaultLog {
    kept: Vec<Fault>,
    dropped: usize,
}

impl FaultLog {
    pub(super) fn push(&mut self, at: Place, path: String, message: impl Into<String>) {
        self.add(Fault { line: at.line, column: at.column, path, message: message.into() });
    }

    pub(super) fn add(&mut self, fault: Fault) {
        if self.kept.len() == KEPT {
            self.dropped += 1;
        } else {
            self.kept.push(fault);
        }
    }

    /// `value` if nothing was found wrong with it.
    pub(super) fn vouch_for<T>(mut self, value: T) -> Result<T, Faults> {
        if self.kept.is_empty() {
            return Ok(value);
        }
        self.kept.sort_by_key(|fault| (fault.line, fault.column));
        let more = self.dropped + self.kept.len().saturating_sub(LISTED);
        self.kept.truncate(LISTED);
        Err(Faults { listed: self.kept, more })
    }
}

/// A place in the text: line and column, both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) const START: Place = Place { line: 1, column: 1 };

    /// The place right after `before`.
    pub(super) fn after(before: &str) -> Self {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column }
    }
}

/// Text from the file as messages quote it: short, on one line.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.is_empty() {
        return "`\"\"`".to_owned();
    }
    let start: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    let rest = if text.chars().nth(SHOWN).is_some() { "…" } else { "" };
    format!("`{}{rest}`", start.replace("\\\"", "\"").replace("\\'", "'"))
}
