//! The files that credentials come from.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::TlsError;

/// Largest file that is read: some systems' bundles of all authorities have 250 kB.
const MAX_BYTES: u64 = 1024 * 1024;

/// Where a node's credentials are, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's certificate, followed by those between it and the authority.
    pub cert: PathBuf,
    /// Its private key, not encrypted.
    pub key: PathBuf,
    /// The authorities that peers' certificates must come from.
    pub ca: PathBuf,
}

/// What was read from the files. Equal content is no change.
#[derive(PartialEq, Eq)]
pub(super) struct Content {
    pub(super) cert: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) ca: Vec<u8>,
}

impl TlsFiles {
    pub(super) fn read(&self) -> Result<Content, TlsError> {
        Ok(Content {
            cert: read("certificate", &self.cert)?,
            key: read("key", &self.key)?,
            ca: read("authorities", &self.ca)?,
        })
    }
}

pub(super) fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { what, path: path.to_owned(), source };
    // Opening a pipe that nobody writes to would wait for ever.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(std::io::Error::other("it is no file")));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(TlsError::TooLarge { what, path: path.to_owned() });
    }
    if bytes.trim_ascii().is_empty() {
        return Err(TlsError::Empty { what, path: path.to_owned() });
    }
    Ok(bytes)
}
