//! One state file: where it is, what is in it, and how it comes to be there whole or not at all.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headworks_core::agent::Kept;
use headworks_proto::{WireError, decode_kept, kept_message, wire};
use prost::{DecodeError, Message};
use sha2::{Digest, Sha256};

/// The first words of a file; the number is that of its format.
const FORMAT: &str = "headworks-state 1 ";
/// Largest file that is read, in bytes. The largest that is written has 20 000 buckets with names of a kilobyte.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Longest escaped node id in a file's name, in bytes: file systems end at 255.
const MAX_ID: usize = 200;

/// What makes a file useless.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it is no state file, or of a later release")]
    Foreign,
    #[error("its checksum does not match its content")]
    Damaged,
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("its content cannot be decoded: {0}")]
    Undecodable(#[from] DecodeError),
    #[error("its content makes no sense: {0}")]
    Senseless(#[from] WireError),
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// The file of a node. Several nodes may share a directory: each id has a name of its own.
pub(super) fn path(directory: &Path, node: &str) -> PathBuf {
    let mut name = escape(node);
    if name.len() > MAX_ID {
        name.truncate(MAX_ID - 33);
        let _ = write!(name, "-{}", &hex(&Sha256::digest(node.as_bytes()))[..32]);
    }
    directory.join(format!("{name}.state"))
}

/// Lower-case letters, digits and dashes stay; every other byte becomes `%` and two digits, so that no two ids share a name.
fn escape(node: &str) -> String {
    let mut name = String::new();
    for byte in node.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The content of a file: a line with format and checksum, and the message.
pub(super) fn encode(kept: &Kept, now: SystemTime) -> Vec<u8> {
    let message = kept_message(kept, unix_millis(now)).encode_to_vec();
    let mut bytes = format!("{FORMAT}{}\n", hex(&Sha256::digest(&message))).into_bytes();
    bytes.extend(message);
    bytes
}

/// What a file with this content has kept, as old as it is by now.
pub(super) fn decode(bytes: &[u8], now: SystemTime) -> Result<Kept, Unusable> {
    let rest = bytes.strip_prefix(FORMAT.as_bytes()).ok_or(Unusable::Foreign)?;
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Unusable::Damaged)?;
    let (checksum, message) = (&rest[..end], &rest[end + 1..]);
    if checksum != hex(&Sha256::digest(message)).as_bytes() {
        return Err(Unusable::Damaged);
    }
    let message = wire::Kept::decode(message)?;
    let saved = message.saved_unix_millis;
    let (kept, refused) = decode_kept(message)?;
    if refused > 0 {
        tracing::warn!(refused, "entries of the state file make no sense and are left out");
    }
    Ok(Kept { age: age(kept.age, saved, unix_millis(now)), ..kept })
}

/// How old headrooms are that had this age when they were saved. Nobody knows if they were saved in the future, or before
/// clocks: then the wall clock has been set, and its difference is no time that went by.
fn age(at_saving: Option<Duration>, saved: u64, now: u64) -> Option<Duration> {
    let since = now.checked_sub(saved).filter(|_| saved > 0)?;
    at_saving?.checked_add(Duration::from_millis(since))
}

fn unix_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path, now: SystemTime) -> Result<Option<Kept>, Unusable> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(Unusable::TooLarge);
    }
    decode(&bytes, now).map(Some)
}

/// Puts a file in place at one stroke: after a crash there is the old one or the new one, whole.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = path.with_extension("state.next");
    let directory = path.parent().unwrap_or(Path::new("."));
    // It may have been removed since; then it is there again, and nobody has to restart anything.
    fs::create_dir_all(directory)?;
    let written = write_whole(&next, bytes).and_then(|()| fs::rename(&next, path));
    if written.is_err() {
        // A full disk gets back what the half of a file took.
        let _ = fs::remove_file(&next);
    }
    written?;
    File::open(directory)?.sync_all()
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    // Values of buckets, such as names of callers, are nobody else's business.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Moves a file aside that nobody can use, for whoever wants to know why; where it went.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = path.with_extension("state.unusable");
    fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests;
