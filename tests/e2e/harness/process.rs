//! A process of the program under test, and what it wrote.

use std::ffi::OsStr;
use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use super::log::Log;
use super::wait::within;

/// A running `headworks`, or another program. Killed when dropped; when the test has failed, the drop shows what it wrote last.
pub(crate) struct Process {
    name: String,
    child: Child,
    pub(crate) stdout: Log,
    pub(crate) stderr: Log,
}

/// How a process ended, and what it wrote.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Process {
    /// Starts `headworks` with these arguments; `name` is what failures call it.
    pub(crate) fn start<A: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = A>) -> Self {
        Self::start_with(name, &[], args)
    }

    /// The same with these `HEADWORKS_…` variables.
    pub(crate) fn start_with<A: AsRef<OsStr>>(
        name: &str,
        variables: &[(&str, &str)],
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headworks"));
        without_our_variables(&mut command).envs(variables.iter().copied()).args(args);
        Self::of(name, command)
    }

    /// Starts any program, with nothing to read.
    pub(crate) fn of(name: &str, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let stdout = Log::follow(child.stdout.take().unwrap());
        let stderr = Log::follow(child.stderr.take().unwrap());
        Self { name: name.to_owned(), child, stdout, stderr }
    }

    /// Runs `headworks` to its end, which has to come within `limit`.
    #[track_caller]
    pub(crate) fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, limit: Duration) -> Ended {
        let mut process = Self::start("headworks", args);
        let status = process.wait(limit);
        Ended { status, stdout: process.stdout.whole(), stderr: process.stderr.whole() }
    }

    /// Its number on this machine.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its memory that is resident now, in bytes.
    #[track_caller]
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap_or_else(|| panic!("{} has no memory left", self.name));
        1024 * kilobytes.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    }

    /// Sends a signal by its name, such as `TERM`.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id();
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status().unwrap();
        assert!(sent.success(), "cannot send {signal} to {}", self.name);
    }

    /// Ends it at once, as the kernel would for want of memory.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end, at most `limit`.
    #[track_caller]
    pub(crate) fn wait(&mut self, limit: Duration) -> ExitStatus {
        let ended = within(limit, || self.ended());
        ended.unwrap_or_else(|| panic!("{} still runs after {limit:?}", self.name))
    }

    /// Waits for the line that says where `what` listens.
    #[track_caller]
    pub(crate) fn address_of(&mut self, what: &str) -> String {
        let found = within(Duration::from_secs(10), || match self.stderr.address_of(what) {
            Some(address) => Some(Some(address)),
            None => self.ended().map(|_| None),
        });
        found.flatten().unwrap_or_else(|| panic!("{} did not say where its {what} listens", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let ended = self.ended();
        self.kill();
        if thread::panicking() {
            let ended = ended.map_or_else(|| "was running".to_owned(), |status| status.to_string());
            eprintln!("--- {} ({ended}) wrote last:\n{}", self.name, self.stderr.tail());
        }
    }
}

/// Takes away the `HEADWORKS_…` variables of whoever runs the tests.
pub(crate) fn without_our_variables(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HEADWORKS_"))
    {
        command.env_remove(name);
    }
    command
}
