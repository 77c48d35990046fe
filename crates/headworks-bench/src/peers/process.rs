//! A process for the time of a measurement.

use std::ffi::OsStr;
use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::processor;

/// Ends with this value.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program; `install` says where to get it.
    pub(crate) fn start(program: &OsStr, arguments: &[String], install: &str) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{} cannot be started ({error}): {install}", program.display()),
            )
        })?;
        Ok(Self { child })
    }

    /// Seconds of processor time that it and its children took so far.
    pub(crate) fn cpu(&self) -> io::Result<f64> {
        let mut all = processor::time_of(self.child.id())?;
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        for child in std::fs::read_to_string(children)?.split_whitespace() {
            all += child.parse().map_or(Ok(Duration::ZERO), processor::time_of)?;
        }
        Ok(all.as_secs_f64())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this machine that nobody listens on.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until it is so, for 10 s at most.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) -> io::Result<()> {
    for _ in 0..500 {
        if is_so() {
            return Ok(());
        }
        sleep(Duration::from_millis(20));
    }
    Err(io::Error::other(format!("{what} after 10 s")))
}
