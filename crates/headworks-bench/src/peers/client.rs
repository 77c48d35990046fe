//! A client that is the same for all: it writes the bytes of a request, and reads until the answer is whole.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Place {
    /// A port of this machine.
    pub(crate) fn port(port: u16) -> Self {
        Self::Tcp(([127, 0, 0, 1], port).into())
    }

    /// Whether somebody listens there.
    pub(crate) fn answers(&self) -> bool {
        match self {
            Self::Tcp(address) => std::net::TcpStream::connect(address).is_ok(),
            Self::Unix(path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
        }
    }
}

/// How a server is asked for one request of a key, and what its answers mean.
pub(crate) trait Ask: Send + Sync {
    /// The bytes of a request.
    fn request(&self, key: &str) -> Vec<u8>;

    /// What the answer is that these bytes begin with: how long, and whether the request passes. `None` while it is not whole.
    fn answer(&self, bytes: &[u8]) -> Option<(usize, bool)>;
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection on which one request at a time is under way.
pub(crate) struct Connection {
    socket: Socket,
    read: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(place: &Place) -> io::Result<Self> {
        let socket = match place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            Place::Unix(path) => Socket::Unix(UnixStream::connect(path).await?),
        };
        Ok(Self { socket, read: Vec::with_capacity(4096) })
    }

    /// Sends a request, and waits for its answer: whether it passes.
    pub(crate) async fn ask(&mut self, ask: &dyn Ask, request: &[u8]) -> io::Result<bool> {
        let Self { socket, read } = self;
        match socket {
            Socket::Tcp(stream) => stream.write_all(request).await?,
            Socket::Unix(stream) => stream.write_all(request).await?,
        }
        loop {
            if let Some((length, passes)) = ask.answer(read) {
                read.drain(..length);
                return Ok(passes);
            }
            let more = match socket {
                Socket::Tcp(stream) => stream.read_buf(read).await?,
                Socket::Unix(stream) => stream.read_buf(read).await?,
            };
            if more == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The answer in HTTP that these bytes begin with: its length, status and body.
pub(crate) fn http(bytes: &[u8]) -> Option<(usize, u16, &[u8])> {
    let head = find(bytes, b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let is_length = |line: &&str| line.len() > 15 && line[..15].eq_ignore_ascii_case("content-length:");
    let length: usize = lines.find(is_length).map_or(Some(0), |line| line[15..].trim().parse().ok())?;
    let body = bytes.get(head + 4..head + 4 + length)?;
    Some((head + 4 + length, status, body))
}

/// Where these bytes are first found.
pub(crate) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
