//! A Redis for the time of a measurement.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

/// A redis-server on a free port of this machine, which keeps nothing on disk and ends with this value.
pub(super) struct Redis {
    child: Child,
    url: String,
    _directory: TempDir,
}

impl Redis {
    pub(super) fn start() -> io::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        let child = command.current_dir(directory.path()).stdout(Stdio::null()).spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("redis-server cannot be started ({error}): install it"))
        })?;
        let redis = Self { child, url: format!("redis://127.0.0.1:{port}"), _directory: directory };
        for _ in 0..250 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(redis);
            }
            sleep(Duration::from_millis(20));
        }
        Err(io::Error::other("redis-server does not listen after 5 s"))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
