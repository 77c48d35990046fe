//! One node of a fleet: a process of this program with a role.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::failure::Failure;

/// No node takes this long to listen, unless the machine has too little of everything.
const PATIENCE: Duration = Duration::from_secs(15);
/// Last lines of a node's log that are shown when it fails.
const TAIL: usize = 10;

/// A running node; killed when dropped, at once, since it has nothing to save.
pub(super) struct Node {
    name: String,
    child: Child,
    told: watch::Receiver<Told>,
}

/// What a node's log told.
#[derive(Debug, Default)]
struct Told {
    /// Where it listens, by the names of its listeners.
    addresses: HashMap<String, String>,
    last: VecDeque<String>,
}

impl Node {
    /// Starts a role of this program.
    pub(super) fn start(name: &str, args: &[&str]) -> Result<Self, Failure> {
        Self::launch(name, &[args, &["--id", name]].concat(), None)
    }

    /// Starts this program with these arguments, and with so many threads for what is asynchronous; as many as there are
    /// processors if nothing is said.
    pub(super) fn launch(name: &str, args: &[&str], threads: Option<u32>) -> Result<Self, Failure> {
        let failed = |error| Failure::Failed(format!("cannot start {name}: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        without_variables(&mut command);
        if let Some(threads) = threads {
            command.env("TOKIO_WORKER_THREADS", threads.to_string());
        }
        command.args(args).args(["--log", "info"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (tell, told) = watch::channel(Told::default());
        if let Some(log) = child.stderr.take() {
            thread::spawn(move || follow(log, &tell));
        }
        Ok(Self { name: name.to_owned(), child, told })
    }

    /// Waits for the line that says where `what` listens: host and port.
    pub(super) async fn address_of(&mut self, what: &str) -> Result<String, Failure> {
        let told = timeout(PATIENCE, self.told.wait_for(|told| told.addresses.contains_key(what))).await;
        let address = told.ok().and_then(Result::ok).and_then(|told| told.addresses.get(what).cloned());
        address.ok_or_else(|| self.failure(&format!("did not say where its {what} listens")))
    }

    /// What the system calls its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An error if it has ended, which no node does by itself.
    pub(super) fn lives(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.failure(&format!("ended by itself ({status})"))),
        }
    }

    /// What it did wrong, with the end of its log.
    fn failure(&self, what: &str) -> Failure {
        let told = self.told.borrow();
        let log: String = told.last.iter().map(|line| format!("\n    {line}")).collect();
        Failure::Failed(format!("{} {what}; its log ends with:{log}", self.name))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes away every `HEADWORKS_…` variable, which would be flags of nodes too.
pub(super) fn without_variables(command: &mut Command) {
    let variables = std::env::vars_os().map(|(variable, _)| variable);
    for variable in variables.filter(|variable| variable.to_string_lossy().starts_with("HEADWORKS_")) {
        command.env_remove(variable);
    }
}

/// Reads a log to its end, so that its writer never waits.
fn follow(log: impl Read, tell: &watch::Sender<Told>) {
    for line in BufReader::new(log).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        tell.send_modify(|told| told.take_in(line));
    }
}

impl Told {
    fn take_in(&mut self, line: String) {
        if line.contains("listening")
            && let (Some(what), Some(address)) = (field(&line, "what"), field(&line, "address"))
        {
            self.addresses.insert(what, address);
        }
        self.last.push_back(line);
        if self.last.len() > TAIL {
            self.last.pop_front();
        }
    }
}

/// A field of a log line, `name=value`, whether its value is quoted or not.
fn field(line: &str, name: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_from_the_log_and_keeps_its_end() {
        let (tell, told) = watch::channel(Told::default());
        let line =
            r#"2026-01-01T00:00:00Z  INFO listening role="agent" what="admin" address="127.0.0.1:9100""#;
        let log = format!("{line}\n{}last", "more\n".repeat(TAIL));
        follow(log.as_bytes(), &tell);
        let told = told.borrow();
        assert_eq!(told.addresses["admin"], "127.0.0.1:9100");
        assert_eq!((told.last.len(), told.last.back().map(String::as_str)), (TAIL, Some("last")));
    }
}
