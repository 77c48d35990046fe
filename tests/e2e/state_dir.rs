//! An agent's state on disk: a process that starts while nobody answers goes on from what the one before it kept.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{Figure, Fleet, FleetPlan, Load, Loads, Node, eventually};

/// A limit that drops half, one by value, and a ban.
const LIMITS: &str = "limits:
  - {name: banned, match: {service: closed}, rate: 0/second}
  - {name: checkout, match: {service: checkout}, rate: 200/second}
";
const RATE: f64 = 400.0;

/// A fleet without agents, and one agent with a state directory.
struct Kept {
    fleet: Fleet,
    agent: Node,
    directory: TempDir,
}

impl Kept {
    fn start(hold: &'static str) -> Self {
        let fleet = FleetPlan::new(LIMITS).zones(&[("a", 0)]).hold(hold).start();
        let directory = tempfile::tempdir().unwrap();
        let agent = agent(&fleet, hold, directory.path());
        Self { fleet, agent, directory }
    }

    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("kept.state")
    }

    /// Half of the load is dropped, and that has been kept.
    #[track_caller]
    fn settles(&self) {
        let tally = load(&self.agent, 9);
        Figure::new("admitted", tally.rate(4..9)).is_about(200.0, 0.08);
    }

    /// Nobody answers any more, and the agent is another process.
    fn restart_alone(&mut self) {
        self.agent.kill();
        self.fleet.aggregators[0].kill();
        self.agent.restart();
    }
}

fn agent(fleet: &Fleet, hold: &str, directory: &Path) -> Node {
    let (parent, directory) = (fleet.aggregators[0].url("tree"), directory.display().to_string());
    let args = ["--zone", "a", "--aggregators", &parent, "--hold", hold, "--state-dir", &directory];
    let agent = Node::start("agent", "kept", &args.map(str::to_owned));
    eventually("the agent has a fresh plan", Duration::from_secs(15), || {
        let state = agent.scrape().plan_state();
        (state != "fresh").then_some(state)
    });
    agent
}

fn load(agent: &Node, seconds: u64) -> crate::harness::Tally {
    let load = Load::new(&agent.url("http"), RATE);
    Loads::start(&[load], Duration::from_secs(seconds)).finish().remove(0)
}

fn is_banned(agent: &Node) -> bool {
    agent.get("http", "/allow?key=K&service=closed").unwrap().status == 429
}

#[test]
fn an_agent_that_restarts_alone_bans_and_drops_as_before_until_the_hold_is_over() {
    let mut kept = Kept::start("20s");
    kept.settles();
    kept.restart_alone();
    assert!(is_banned(&kept.agent), "the first request of all");
    assert_eq!(kept.agent.scrape().plan_state(), "alone");
    let alone = load(&kept.agent, 6);
    Figure::new(&format!("admitted alone\n{alone}\n"), alone.rate(0..6)).is_about(200.0, 0.08);
    eventually("the hold is over", Duration::from_secs(20), || {
        let state = kept.agent.scrape().plan_state();
        (state != "open").then_some(state)
    });
    assert!(is_banned(&kept.agent), "bans never open");
    eventually("the limit has opened", Duration::from_secs(12), || {
        let ratio = kept.agent.scrape().of_limit("headworks_drop_ratio", "checkout");
        (ratio > 0.0).then(|| format!("drops {ratio}"))
    });
    let open = load(&kept.agent, 1);
    assert_eq!(open.total.allowed, open.total.attempts);
    kept.fleet.aggregators[0].restart();
    eventually("it has a fresh plan", Duration::from_secs(20), || {
        let state = kept.agent.scrape().plan_state();
        (state != "fresh").then_some(state)
    });
}

#[test]
fn a_damaged_file_is_set_aside_and_the_next_one_is_sound() {
    let mut kept = Kept::start("60s");
    eventually("the state is kept", Duration::from_secs(10), || {
        (!kept.file().exists()).then(|| "no file".to_owned())
    });
    kept.agent.kill();
    let mut bytes = fs::read(kept.file()).unwrap();
    let middle = bytes.len() / 2 + 40;
    bytes[middle] ^= 1;
    fs::write(kept.file(), bytes).unwrap();
    kept.agent.restart();
    eventually("a sound file is written", Duration::from_secs(20), || {
        (!kept.file().exists()).then(|| "no file".to_owned())
    });
    assert_eq!(kept.agent.says("state file ignored"), 1);
    assert!(kept.directory.path().join("kept.state.unusable").exists());
    kept.restart_alone();
    assert!(is_banned(&kept.agent));
    assert_eq!(kept.agent.says("state file ignored"), 0);
}

#[test]
fn an_agent_that_cannot_keep_its_state_says_so_once_and_goes_on_until_it_can() {
    let errors = |agent: &Node| agent.scrape().value("headworks_state_write_errors_total");
    let kept = Kept::start("60s");
    let below = kept.directory.path().join("below");
    fs::write(&below, "in the way").unwrap();
    let args = ["--zone", "a", "--aggregators", &kept.fleet.aggregators[0].url("tree")].map(str::to_owned);
    let state = ["--state-dir".to_owned(), below.display().to_string()];
    let agent = Node::start("agent", "hindered", &[&args[..], &state[..]].concat());
    eventually("it has failed twice", Duration::from_secs(20), || {
        let errors = errors(&agent);
        (errors < 2.0).then(|| format!("{errors} errors"))
    });
    assert_eq!(agent.says("state cannot be kept"), 1);
    assert!(is_banned(&agent), "limits are in force all the same");
    fs::remove_file(&below).unwrap();
    eventually("the state is kept", Duration::from_secs(12), || {
        (!below.join("hindered.state").exists()).then(|| "no file".to_owned())
    });
    eventually("it says so", Duration::from_secs(2), || {
        (agent.says("state is kept again") != 1).then(|| "not yet".to_owned())
    });
}

/// A tiny file system of its own, where the tests may mount one.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let disk = Self(tempfile::tempdir().unwrap());
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(disk.0.path())
            .output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_costs_no_request_and_the_old_file_stays_whole() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: no file system may be mounted here");
        return;
    };
    let fleet = FleetPlan::new(LIMITS).zones(&[("a", 0)]).start();
    let mut agent = agent(&fleet, "60s", disk.0.path());
    let file = disk.0.path().join("kept.state");
    eventually("the state is kept", Duration::from_secs(10), || {
        (!file.exists()).then(|| "no file".to_owned())
    });
    let full = fs::write(disk.0.path().join("filler"), vec![0; 128 * 1024]);
    assert!(full.is_err(), "the disk is not as small as it was asked to be");
    eventually("a write fails", Duration::from_secs(25), || {
        let errors = agent.scrape().value("headworks_state_write_errors_total");
        (errors < 1.0).then(|| format!("{errors} errors"))
    });
    assert_eq!(agent.says("state cannot be kept"), 1);
    assert!(is_banned(&agent));
    agent.kill();
    agent.restart();
    assert_eq!((agent.says("state taken over"), agent.says("state file ignored")), (1, 0));
    fs::remove_file(disk.0.path().join("filler")).unwrap();
}
