//! One client: h2load, which spends little, so that the server is what is measured.

use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// A method, and the message that it is asked with.
pub(super) struct Question {
    url: String,
    message: String,
    _folder: TempDir,
}

impl Question {
    /// The message is written as gRPC puts it: not compressed, then the length.
    pub(super) fn new(address: &str, path: &str, message: &[u8]) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("message");
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
        fs::write(&file, [&[0], &length[..], message].concat())?;
        let message = file.display().to_string();
        Ok(Self { url: format!("http://{address}{path}"), message, _folder: folder })
    }
}

/// Asks again and again on one connection, with so many requests in flight; how many were answered.
pub(super) fn ask(question: &Question, time: Duration, in_flight: u16) -> io::Result<u64> {
    let mut command = Command::new("h2load");
    command.args(["-c", "1", "-m", &in_flight.to_string(), "-D", &time.as_secs().to_string()]);
    command.args(["-H", "content-type: application/grpc", "-H", "te: trailers", "-d", &question.message]);
    let ran = command.arg(&question.url).output().map_err(|error| {
        let text = format!("h2load cannot be started ({error}): install Debian's nghttp2-client");
        io::Error::new(error.kind(), text)
    })?;
    let told = String::from_utf8_lossy(&ran.stdout);
    answers(&told)
        .ok_or_else(|| io::Error::other(format!("the server did not answer every request:\n{told}")))
}

/// What h2load tells of the requests, if all were answered with a message: an error in gRPC has none.
fn answers(told: &str) -> Option<u64> {
    let line = |start: &str| told.lines().find_map(|line| line.strip_prefix(start));
    let (requests, traffic) = (line("requests: ")?, line("traffic: ")?);
    let count = |what: &str| {
        requests.split(", ").find_map(|part| part.strip_suffix(what)?.trim().parse::<u64>().ok())
    };
    let data: u64 = traffic.rsplit('(').next()?.split(')').next()?.parse().ok()?;
    let succeeded = count("succeeded")?;
    (succeeded > 0 && count("failed")? == 0 && data > 5 * succeeded).then_some(succeeded)
}

/// A field of a message: text or a message.
pub(super) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    assert!(length < 0x80, "longer lengths take two bytes");
    [&[number << 3 | 2, length], bytes].concat()
}

/// A field of a message: a whole number below 2²¹.
pub(super) fn number(number: u8, value: u32) -> Vec<u8> {
    let [low, middle, high] = [value, value >> 7, value >> 14].map(|part| (part & 0x7f).to_le_bytes()[0]);
    vec![number << 3, low | 0x80, middle | 0x80, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "
finished in 2.00s, 23853.50 req/s, 1.23MB/s
requests: 47707 total, 47771 started, 47707 done, 47707 succeeded, 0 failed, 0 errored, 0 timeout
traffic: 4.13MB (4335621) total, 1.19MB (1243201) headers (space savings 62.50%), 1.46MB (1526624) data
";

    #[test]
    fn only_answers_with_messages_count() {
        assert_eq!(answers(TOLD), Some(47_707));
        assert_eq!(answers(&TOLD.replace("(1526624)", "(0)")), None);
        assert_eq!(answers(&TOLD.replace("0 failed", "1 failed")), None);
        assert_eq!(answers("could not connect"), None);
    }

    #[test]
    fn numbers_take_three_bytes() {
        assert_eq!(number(2, 300), [16, 0xac, 0x82, 0]);
        assert_eq!(field(1, b"ab"), [10, 2, b'a', b'b']);
    }
}
