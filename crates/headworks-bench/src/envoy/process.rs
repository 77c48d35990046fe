//! Child processes, and what they use of the processor.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The part of a second in which /proc counts processor time: the same on every machine that Rust's standard library
/// runs on, whatever its kernel counts in.
const TICK: Duration = Duration::from_millis(10);
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
        let path = format!("/proc/{}/stat", self.0.id());
        processor(&fs::read_to_string(&path)?).ok_or_else(|| {
            io::Error::other(format!("{path} does not tell what the process uses, as that of Linux does"))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The name, in brackets, may hold anything; the times are the 12th and 13th word after it.
fn processor(stat: &str) -> Option<Duration> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut words = after.split_whitespace().skip(11).map(|word| word.parse::<u32>().ok());
    Some(TICK * (words.next()?? + words.next()??))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_user_and_kernel_whatever_the_name_is() {
        let stat = "17 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1";
        assert_eq!(processor(stat), Some(Duration::from_secs(3)));
        assert_eq!(processor("17 (a"), None);
    }
}
