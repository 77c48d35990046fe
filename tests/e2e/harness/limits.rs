//! A limits file in a folder of its own.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

/// A limits file; gone with the folder when dropped.
pub(crate) struct LimitsFile {
    folder: TempDir,
}

impl LimitsFile {
    pub(crate) fn new(text: &str) -> Self {
        let file = Self { folder: tempfile::tempdir().unwrap() };
        file.write(text);
        file
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("limits.yaml")
    }

    /// Puts other content in place at one stroke, as deployments do: no reader ever sees half of it.
    pub(crate) fn write(&self, text: &str) {
        let next = self.folder.path().join("next");
        fs::write(&next, text).unwrap();
        fs::rename(next, self.path()).unwrap();
    }
}
