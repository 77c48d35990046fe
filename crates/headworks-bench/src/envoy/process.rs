//! Child processes, and what they use of the processor.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::processor;

/// How long anything may take to start.
const START: Duration = Duration::from_secs(20);

/// A process that ends with this value.
pub(super) struct Process(Child);

impl Process {
    /// Starts a program, whose log is nobody's business.
    pub(super) fn start(program: &Path, command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{} cannot be started: {error}", program.display()))
        };
        command.spawn().map(Self).map_err(named)
    }

    /// Processor time of all its threads since it was started.
    pub(super) fn cpu(&self) -> io::Result<Duration> {
        processor::time_of(self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of this machine that nobody has.
pub(super) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until something listens at a port.
pub(super) fn await_port(what: &str, port: u16) -> io::Result<()> {
    await_true(&format!("{what} does not listen"), || TcpStream::connect(("127.0.0.1", port)).is_ok())
}

/// Waits until something is so; `otherwise` is what it is told as.
pub(super) fn await_true(otherwise: &str, mut is: impl FnMut() -> bool) -> io::Result<()> {
    let began = Instant::now();
    while !is() {
        if began.elapsed() > START {
            return Err(io::Error::other(format!("{otherwise} after {} s", START.as_secs())));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}
