//! A folder for the time of one run.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A folder that only this user can enter; gone, with all that is in it, when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new one, where the system keeps what is temporary.
    pub(super) fn new() -> Result<Self, Failure> {
        let name = format!("headworks-bench-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::Failed(format!("cannot make {}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
