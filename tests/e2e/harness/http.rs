//! The least HTTP client that will do: one request a connection, over TCP or a Unix socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// No answer takes this long unless its server hangs.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An answer: status, head in lower case, and body.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

/// Asks `address` (host and port) for a path.
pub(crate) fn get(address: &str, path: &str) -> io::Result<Answer> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    ask(stream, path)
}

/// Asks the server of a Unix socket for a path.
pub(crate) fn get_unix(socket: &Path, path: &str) -> io::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    ask(stream, path)
}

/// Sends `address` a request with these lines of a head, each without its end.
pub(crate) fn send(address: &str, start: &str, head: &[&str], body: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let lines: String = head.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let fixed = "Host: localhost\r\nConnection: close\r\n";
    let request = format!("{start} HTTP/1.1\r\n{fixed}Content-Length: {length}\r\n{lines}\r\n{body}");
    stream.write_all(request.as_bytes())?;
    answer(stream, start)
}

fn ask(mut stream: impl Read + Write, path: &str) -> io::Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    answer(stream, path)
}

fn answer(mut stream: impl Read, path: &str) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    read(&String::from_utf8_lossy(&bytes)).ok_or_else(|| io::Error::other(format!("no answer to {path}")))
}

/// Every answer of the program comes in one piece, with its length.
fn read(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}
