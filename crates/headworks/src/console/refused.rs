//! The last limits file that was refused, and why.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use headworks_core::limits::Fault;
use serde::Serialize;

use crate::legible;
use crate::limits_file::{self, FaultyFile, LoadError};

/// Lines shown before and after the one that has a fault.
const AROUND: usize = 2;
/// Bytes shown of one line.
const LONGEST: usize = 240;

/// How many limits files were refused, and the last of them.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    count: AtomicU64,
    last: Mutex<Option<Refusal>>,
}

/// One refusal.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Refusal {
    /// When, in seconds since 1970.
    at: u64,
    /// Whether a good file has come since.
    over: bool,
    /// Why, as the log says it.
    said: Vec<String>,
    /// The faults that have a place in a file.
    faults: Vec<FaultView>,
}

/// One fault, with the lines around it.
#[derive(Clone, Debug, Serialize)]
struct FaultView {
    file: String,
    line: usize,
    column: usize,
    /// Where in the document.
    path: String,
    message: String,
    /// The number of the first line that is shown.
    first: usize,
    lines: Vec<String>,
}

/// What is told with every event.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct RefusalSummary {
    /// Files refused since the controller started.
    pub(super) count: u64,
    /// Whether the last file was refused, and the running limits are those of an earlier one.
    pub(super) stands: bool,
    pub(super) at: Option<u64>,
}

impl Refusals {
    /// How many files were refused.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// A file was refused: counted, told to the log, and kept.
    pub(crate) fn refuse(&self, error: &LoadError) {
        limits_file::refuse(&error.to_string(), &self.count);
        *self.last() = Some(Refusal::of(error));
    }

    /// A good file came.
    pub(crate) fn settle(&self) {
        if let Some(last) = &mut *self.last() {
            last.over = true;
        }
    }

    pub(super) fn summary(&self) -> RefusalSummary {
        let last = self.last();
        RefusalSummary {
            count: self.count(),
            stands: last.as_ref().is_some_and(|last| !last.over),
            at: last.as_ref().map(|last| last.at),
        }
    }

    pub(super) fn tell(&self) -> Option<Refusal> {
        self.last().clone()
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Refusal>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refusal {
    fn of(error: &LoadError) -> Self {
        let faults = match error {
            LoadError::Faulty(files) => files.iter().flat_map(faults_of).collect(),
            _ => Vec::new(),
        };
        Self {
            at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            over: false,
            said: error.to_string().lines().map(|line| legible::cut(line, LONGEST)).collect(),
            faults,
        }
    }
}

fn faults_of(file: &FaultyFile) -> Vec<FaultView> {
    file.faults.listed().iter().map(|fault| FaultView::of(&file.path, fault, &file.text)).collect()
}

impl FaultView {
    fn of(file: &Path, fault: &Fault, text: &str) -> Self {
        let first = fault.line.saturating_sub(AROUND).max(1);
        let lines = text.lines().skip(first - 1).take(fault.line + AROUND + 1 - first);
        Self {
            file: file.display().to_string(),
            line: fault.line,
            column: fault.column,
            path: fault.path.clone(),
            message: fault.message.clone(),
            first,
            lines: lines.map(|line| legible::cut(line, LONGEST)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use headworks_core::limits::parse;

    use super::*;

    fn faulty(text: &str) -> LoadError {
        let faults = parse(text).unwrap_err();
        LoadError::Faulty(vec![FaultyFile { path: "limits.yaml".into(), faults, text: text.to_owned() }])
    }

    #[test]
    fn a_refusal_shows_each_fault_between_its_lines_until_a_good_file_comes() {
        let refusals = Refusals::default();
        refusals.refuse(&faulty(
            "# one\nlimits:\n  - name: a\n    rate: 5/fortnight\n    mode: shadow\n# six\n# seven\n",
        ));
        let refusal = refusals.tell().unwrap();
        let fault = &refusal.faults[0];
        assert_eq!((fault.line, fault.first, fault.lines.len()), (4, 2, 5), "{refusal:?}");
        assert!(
            fault.lines[2].contains("fortnight") && refusal.said[0].starts_with("limits.yaml:4:"),
            "{refusal:?}"
        );
        assert!(refusals.summary().stands && refusals.count() == 1);
        refusals.settle();
        assert!(!refusals.summary().stands && refusals.tell().is_some());
    }

    #[test]
    fn a_file_that_is_empty_or_all_on_one_line_is_shown_as_far_as_it_goes() {
        let refusals = Refusals::default();
        for text in ["", &format!("limits: [{{name: a, rate: {}}}]", "x".repeat(100_000))] {
            refusals.refuse(&faulty(text));
            let refusal = refusals.tell().unwrap();
            assert!(refusal.faults[0].lines.iter().all(|line| line.len() <= LONGEST));
        }
    }
}
