//! What is measured, and what it needs: a controller, an aggregator, an agent that Envoy asks, and the Envoys.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::configuration::{Ports, Way};
use super::process::{Process, await_port, await_true, free_port};

/// Limits that nobody reaches: what is measured is what it takes to count and to decide.
const LIMITS: &str = "limits:
  - {name: checkout, match: {service: checkout}, rate: 100000000/second}
  - {name: per-caller, match: {service: checkout}, per: [caller], rate: 50000000/second}
";

/// Everything that runs; all of it ends with this value.
pub(super) struct Fleet {
    headworks: PathBuf,
    /// Where the controller tells what it hears.
    admin: u16,
    envoys: [(Way, u16, Process); 3],
    _others: [Process; 3],
    _folder: TempDir,
}

impl Fleet {
    /// Starts it, and waits until every part of it knows the limits.
    pub(super) fn start(programs: &Path, envoy: &Path) -> io::Result<Self> {
        let (programs, folder) = (programs.canonicalize()?, tempfile::tempdir()?);
        let module = programs.join("libheadworks_envoy.so");
        if !module.is_file() {
            let message = format!("{} is missing: build it with `cargo build --release`", module.display());
            return Err(io::Error::other(message));
        }
        let limits = folder.path().join("limits.yaml");
        fs::write(&limits, LIMITS)?;
        let headworks = programs.join("headworks");
        let [tree, admin, aggregator, service] = [free_port()?, free_port()?, free_port()?, free_port()?];
        let role = |line: &[&str]| Process::start(&headworks, Command::new(&headworks).args(line));
        let [at_tree, at_admin, at_aggregator, at_service] =
            [tree, admin, aggregator, service].map(|port| format!("127.0.0.1:{port}"));
        let limits = limits.display().to_string();
        let others = [
            role(&["controller", "--limits", &limits, "--listen", &at_tree, "--admin", &at_admin])?,
            role(&[
                "aggregator",
                "--zone",
                "a",
                "--controllers",
                &format!("http://{at_tree}"),
                "--listen",
                &at_aggregator,
                "--admin",
                "127.0.0.1:0",
            ])?,
            role(&[
                "agent",
                "--zone",
                "a",
                "--aggregators",
                &format!("http://{at_aggregator}"),
                "--grpc",
                &at_service,
                "--http",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
            ])?,
        ];
        await_port("the controller", admin)?;
        await_port("the agent's rate limit service", service)?;
        let start = |way| start_envoy(way, envoy, &programs, folder.path(), aggregator, service);
        let envoys = [start(Way::Bare)?, start(Way::Module)?, start(Way::Asking)?];
        let fleet = Self { headworks, admin, envoys, _others: others, _folder: folder };
        await_true("the controller does not hear the agent and the module", || fleet.agents() == Some(2))?;
        Ok(fleet)
    }

    /// The port of an Envoy, and its process.
    pub(super) fn envoy(&self, way: Way) -> (u16, &Process) {
        let [bare, module, asking] = &self.envoys;
        let (_, port, process) = match way {
            Way::Bare => bare,
            Way::Module => module,
            Way::Asking => asking,
        };
        (*port, process)
    }

    /// Nobody was measured who let requests pass without looking at them.
    pub(super) fn has_counted(&self, requests: u64) -> io::Result<()> {
        await_true(
            &format!("the fleet has counted fewer than the {requests} requests that were to be limited"),
            || self.offered().is_some_and(|offered| offered >= requests),
        )
    }

    fn agents(&self) -> Option<u64> {
        let status = self.status()?;
        Some(status["children"].as_array()?.iter().filter_map(|child| child["agents"].as_u64()).sum())
    }

    fn offered(&self) -> Option<u64> {
        let status = self.status()?;
        let limit = status["limits"].as_array()?.iter().find(|limit| limit["name"] == "checkout")?.clone();
        limit["totals"]["offered"].as_u64()
    }

    fn status(&self) -> Option<Value> {
        let admin = format!("http://127.0.0.1:{}", self.admin);
        let told =
            Command::new(&self.headworks).args(["status", "--json", "--admin", &admin]).output().ok()?;
        serde_json::from_slice(&told.stdout).ok()
    }
}

fn start_envoy(
    way: Way,
    envoy: &Path,
    programs: &Path,
    folder: &Path,
    aggregator: u16,
    service: u16,
) -> io::Result<(Way, u16, Process)> {
    let port = free_port()?;
    let file = folder.join(format!("{way:?}.yaml"));
    fs::write(&file, way.configuration(Ports { envoy: port, aggregator, service }))?;
    let mut command = Command::new(envoy);
    command
        .arg("-c")
        .arg(&file)
        .arg("--disable-hot-restart")
        .env("ENVOY_DYNAMIC_MODULES_SEARCH_PATH", programs);
    let process = Process::start(envoy, &mut command)?;
    await_port(&format!("Envoy ({})", way.name()), port)?;
    Ok((way, port, process))
}
