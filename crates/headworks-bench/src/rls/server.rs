//! The servers that are measured, each a process of its own.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use super::client::{Question, field, number};
use crate::processor;

/// A second lets pass so many of each key: nothing is refused, and all is counted.
const MOST: u32 = 1_000_000;
const LIMITS: &str = "limits: [{name: each, per: [key], rate: 1000000/second, enforcement: exact}]\n";

/// Which server it is.
#[derive(Clone, Copy)]
enum Kind {
    Headworks,
    Throttlecrab,
}

/// A running server.
pub(super) struct Server {
    kind: Kind,
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Server {
    pub(super) fn headworks(program: &Path) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let limits = folder.path().join("limits.yaml");
        fs::write(&limits, LIMITS)?;
        let mut command = Command::new(program);
        command.args(["agent", "--standalone", "--limits"]).arg(limits);
        command.args(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log", "error"]);
        Self::start(Kind::Headworks, command, folder, |command, _, address| {
            command.args(["--grpc", address]);
        })
    }

    pub(super) fn throttlecrab(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(["--grpc", "--grpc-host", "127.0.0.1", "--log-level", "error"]);
        Self::start(Kind::Throttlecrab, command, tempfile::tempdir()?, |command, port, _| {
            command.args(["--grpc-port", port]);
        })
    }

    fn start(
        kind: Kind,
        mut command: Command,
        folder: TempDir,
        listen: impl Fn(&mut Command, &str, &str),
    ) -> io::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let address = format!("127.0.0.1:{port}");
        listen(&mut command, &port, &address);
        let program = command.get_program().to_owned();
        let child = command.stdout(Stdio::null()).spawn().map_err(|error| {
            let text =
                format!("{} cannot be started ({error}): build it, or say where it is", program.display());
            io::Error::new(error.kind(), text)
        })?;
        let server = Self { kind, child, address, _folder: folder };
        for _ in 0..250 {
            if TcpStream::connect(&server.address).is_ok() {
                return Ok(server);
            }
            sleep(Duration::from_millis(20));
        }
        Err(io::Error::other(format!("{} does not listen after 5 s", program.display())))
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Headworks => "headworks agent, RLS",
            Kind::Throttlecrab => "throttlecrab-server, gRPC",
        }
    }

    /// What it is asked.
    pub(super) fn question(&self) -> io::Result<Question> {
        match self.kind {
            Kind::Headworks => {
                let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
                let entry = [field(1, b"key"), field(2, b"tenant")].concat();
                let message = [field(1, b"edge"), field(2, &field(1, &entry))].concat();
                Question::new(&self.address, path, &message)
            }
            Kind::Throttlecrab => {
                let rate = [number(2, MOST), number(3, MOST), number(4, 1), number(5, 1)].concat();
                let message = [field(1, b"tenant"), rate].concat();
                Question::new(&self.address, "/throttlecrab.RateLimiter/Throttle", &message)
            }
        }
    }

    /// Processor time of its process so far, by itself and in the system for it.
    pub(super) fn processor_time(&self) -> io::Result<Duration> {
        processor::time_of(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
