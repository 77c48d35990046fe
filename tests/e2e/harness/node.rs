//! One node of a fleet: a process with a role, which can be killed and started again on its ports.

use std::path::PathBuf;

use super::http::{Answer, get};
use super::metrics::Scrape;
use super::process::Process;
use super::status::Status;

/// What a node's listeners are called in its log, and the flag that sets each one's address.
const LISTENERS: [(&str, &str); 3] = [("tree", "--listen"), ("http", "--http"), ("admin", "--admin")];

/// A node of a fleet.
pub(crate) struct Node {
    pub(crate) id: String,
    role: &'static str,
    args: Vec<String>,
    addresses: Vec<(&'static str, &'static str, String)>,
    pub(crate) process: Process,
}

impl Node {
    /// Starts a node whose listeners all take any free port, and waits until it listens.
    pub(crate) fn start(role: &'static str, id: &str, args: &[String]) -> Self {
        let mut args = args.to_vec();
        args.extend(["--id".to_owned(), id.to_owned()]);
        let listeners = LISTENERS.into_iter().filter(|(what, _)| has(role, what));
        let addresses: Vec<_> =
            listeners.map(|(what, flag)| (what, flag, "127.0.0.1:0".to_owned())).collect();
        let process = launch(role, id, &args, &addresses);
        let mut node = Self { id: id.to_owned(), role, args, addresses, process };
        node.learn_addresses();
        node
    }

    /// Starts it again on the ports it had. It must have been killed.
    pub(crate) fn restart(&mut self) {
        self.process = launch(self.role, &self.id, &self.args, &self.addresses);
        self.learn_addresses();
    }

    fn learn_addresses(&mut self) {
        for (what, _, address) in &mut self.addresses {
            *address = self.process.address_of(what);
        }
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Host and port of a listener: tree, http or admin.
    #[track_caller]
    pub(crate) fn address(&self, what: &str) -> &str {
        let found = self.addresses.iter().find(|(name, ..)| *name == what);
        found.map_or_else(|| panic!("{} has no {what}", self.id), |(_, _, address)| address.as_str())
    }

    pub(crate) fn url(&self, what: &str) -> String {
        let secure = what == "tree" && self.args.iter().any(|arg| arg == "--tls-cert");
        format!("{}://{}", if secure { "https" } else { "http" }, self.address(what))
    }

    /// Where its Unix socket is.
    pub(crate) fn socket(&self) -> PathBuf {
        let at = self.args.iter().position(|arg| arg == "--http-unix").unwrap();
        PathBuf::from(&self.args[at + 1])
    }

    pub(crate) fn get(&self, what: &str, path: &str) -> std::io::Result<Answer> {
        get(self.address(what), path)
    }

    #[track_caller]
    pub(crate) fn scrape(&self) -> Scrape {
        Scrape::of(self.address("admin"))
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Status {
        self.try_status().unwrap_or_else(|| panic!("{} does not tell its status", self.id))
    }

    /// Its status, or nothing while it is away.
    pub(crate) fn try_status(&self) -> Option<Status> {
        Status::of(self.address("admin"))
    }

    /// How many lines of its log since it was started hold this text.
    pub(crate) fn says(&self, text: &str) -> usize {
        self.process.stderr.lines().iter().filter(|line| line.contains(text)).count()
    }
}

fn has(role: &str, what: &str) -> bool {
    match what {
        "tree" => role != "agent",
        "http" => role == "agent",
        _ => true,
    }
}

fn launch(role: &str, id: &str, args: &[String], addresses: &[(&str, &str, String)]) -> Process {
    let listeners = addresses.iter().flat_map(|(_, flag, address)| [(*flag).to_owned(), address.clone()]);
    Process::start(id, [role.to_owned()].into_iter().chain(args.iter().cloned()).chain(listeners))
}
