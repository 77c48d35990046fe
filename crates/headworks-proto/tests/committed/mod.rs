//! Files that are committed and compared with what the code makes; `UPDATE_SNAPSHOTS=1` writes them anew.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The committed text of a file below `tests`: what the code makes, while snapshots are being updated.
pub(crate) fn text(file: &str, made: &str) -> String {
    if env::var_os("UPDATE_SNAPSHOTS").is_some_and(|value| value == "1") {
        fs::write(path(file), made).unwrap();
        return made.to_owned();
    }
    read(file)
}

/// The committed text of a file below `tests`, as it is.
pub(crate) fn read(file: &str) -> String {
    let path = path(file);
    fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; UPDATE_SNAPSHOTS=1 cargo test -p headworks-proto writes it", path.display())
    })
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file)
}
