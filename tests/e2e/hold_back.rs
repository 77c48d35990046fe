//! Hold-back: limits that would newly drop much of the present traffic wait until somebody says that they are meant.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Ended, Figure, Fleet, FleetPlan, Load, Loads, Node, Process, eventually};

const PATIENCE: Duration = Duration::from_secs(10);
const OFFERED: f64 = 300.0;

fn limit(rate: &str) -> String {
    format!("limits:\n  - {{name: checkout, match: {{service: checkout}}, rate: {rate}}}\n")
}

/// A fleet with traffic, whose controllers have a token.
struct Loaded {
    fleet: Fleet,
    token: TempDir,
    _loads: Loads,
}

impl Loaded {
    #[track_caller]
    fn start(controllers: usize, more: &[&str]) -> Self {
        let token = tempfile::tempdir().unwrap();
        let file = token.path().join("token");
        fs::write(&file, "0123456789abcdef").unwrap();
        let file = file.display().to_string();
        let args = [&["--admin-token-file", &file], more].concat();
        let plan = FleetPlan::new(&limit("25000/second")).zones(&[("a", 1)]).controllers(controllers);
        let fleet = plan.controllers_with(&args).start();
        let load = Load::new(&fleet.agents[0].url("http"), OFFERED);
        let loads = Loads::start(&[load], Duration::from_secs(300));
        let loaded = Self { fleet, token, _loads: loads };
        eventually("all controllers hear the traffic", PATIENCE, || {
            let offered: Vec<f64> = loaded.fleet.controllers().map(offered).collect();
            offered.iter().any(|offered| *offered < 0.8 * OFFERED).then(|| format!("{offered:?}"))
        });
        loaded
    }

    fn write(&self, rate: &str) {
        self.fleet.limits.write(&limit(rate));
    }

    /// `headworks limits apply` on these controllers.
    fn apply(&self, admin: &str, more: &[&str]) -> Ended {
        let file = self.token.path().join("token").display().to_string();
        let args = [&["limits", "apply", "--admin", admin, "--token-file", &file], more].concat();
        Process::run(args, PATIENCE)
    }

    #[track_caller]
    fn goes_by(&self, rate: f64) {
        eventually(&format!("all go by {rate}/s"), PATIENCE, || {
            let rates: Vec<_> = self.fleet.nodes().map(|node| node.status().rate("checkout")).collect();
            rates.iter().any(|found| *found != Some(rate)).then(|| format!("{rates:?}"))
        });
    }
}

fn offered(node: &Node) -> f64 {
    node.status().limit("checkout").and_then(|limit| limit["offered"].as_f64()).unwrap_or_default()
}

fn held(node: &Node) -> Value {
    node.status().0["limits_held"].clone()
}

/// The digest of what is held back; it changes when other limits come.
#[track_caller]
fn holds_other_than(node: &Node, before: &str) -> String {
    let mut digest = String::new();
    eventually("other limits are held back", PATIENCE, || {
        digest = held(node)["digest"].as_str().unwrap_or_default().to_owned();
        (digest.is_empty() || digest == before).then(|| format!("{digest:?}"))
    });
    digest
}

#[track_caller]
fn holds_nothing(node: &Node) {
    eventually("nothing is held back", PATIENCE, || {
        let held = held(node);
        (!held.is_null()).then(|| held.to_string())
    });
}

#[track_caller]
fn counts(node: &Node, held: f64, times: f64) {
    let scrape = node.scrape();
    Figure::new("headworks_limits_held", scrape.value("headworks_limits_held")).is_near(held, 0.0);
    Figure::new("times", scrape.value("headworks_limits_held_back_total")).is_near(times, 0.0);
}

#[track_caller]
fn says(ended: &Ended, code: i32, told: &str) {
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.status.code(), Some(code), "{said}");
    assert!(said.contains(told), "not {told:?}, but\n{said}");
}

#[test]
fn a_slip_of_three_digits_waits_until_it_is_confirmed() {
    let loaded = Loaded::start(1, &[]);
    let controller = &loaded.fleet.controller;
    let generation = controller.status().generation();
    counts(controller, 0.0, 0.0);

    loaded.write("25/second");
    let first = holds_other_than(controller, "");
    counts(controller, 1.0, 1.0);
    assert_eq!(controller.says("checkout: 25000/second → 25/second would newly drop "), 1);
    assert!(controller.says("headworks limits apply") > 0);
    let cause = &held(controller)["causes"][0];
    Figure::new("part", cause["newly_part"].as_f64().unwrap()).is_near(1.0 - 25.0 / OFFERED, 0.03);
    let table = Process::run(["status", "--admin", &controller.url("admin")], PATIENCE).stdout;
    assert!(table.contains("held back") && table.contains("25000/second → 25/second"), "{table}");
    assert_eq!(controller.status().generation(), generation);
    loaded.goes_by(25_000.0);

    loaded.write("25000/second");
    holds_nothing(controller);
    counts(controller, 0.0, 1.0);
    assert_eq!(controller.status().generation(), generation);

    loaded.write("24/second");
    let second = holds_other_than(controller, &first);
    let admin = controller.url("admin");
    says(&Process::run(["limits", "apply", "--admin", &admin], PATIENCE), 1, "--token-file");
    says(&loaded.apply(&admin, &["--digest", &first]), 1, "no limits with the digest");
    says(&loaded.apply(&admin, &["--digest", "25"]), 64, "limits check");
    counts(controller, 1.0, 2.0);
    says(&loaded.apply(&admin, &[]), 0, &format!("limits {second} are in force now"));
    loaded.goes_by(24.0);
    holds_nothing(controller);
    says(&loaded.apply(&admin, &[]), 0, "no limits are held back");
    says(&loaded.apply(&admin, &["--digest", &second]), 0, "in force already");
}

#[test]
fn newer_content_takes_the_place_of_what_is_held_back_and_is_judged_by_itself() {
    let loaded = Loaded::start(1, &[]);
    let controller = &loaded.fleet.controller;
    loaded.write("25/second");
    let first = holds_other_than(controller, "");
    loaded.write("30/second");
    let second = holds_other_than(controller, &first);
    says(&loaded.apply(&controller.url("admin"), &["--digest", &first]), 1, "no limits with the digest");
    assert_eq!(held(controller)["digest"], second);

    // A tenth is what may go without a question: 295 of 300 a second pass.
    loaded.write("295/second");
    loaded.goes_by(295.0);
    holds_nothing(controller);

    // Less again, and the file says that it is meant.
    let text = limit("20/second");
    loaded.fleet.limits.write(&text);
    let digest = holds_other_than(controller, &second);
    loaded.fleet.limits.write(&format!("confirm: {digest}\n{text}"));
    loaded.goes_by(20.0);
    holds_nothing(controller);
    assert_eq!(controller.says("limits confirmed in their file"), 1);
}

#[test]
fn a_confirmation_reaches_all_controllers() {
    let loaded = Loaded::start(2, &[]);
    loaded.write("25/second");
    let digests: Vec<String> =
        loaded.fleet.controllers().map(|controller| holds_other_than(controller, "")).collect();
    assert_eq!(digests[0], digests[1]);
    let admin: Vec<String> = loaded.fleet.controllers().map(|controller| controller.url("admin")).collect();
    let ended = loaded.apply(&admin.join(","), &[]);
    says(&ended, 0, "25000/second → 25/second");
    assert_eq!(ended.stdout.matches("in force now").count(), 2, "{}", ended.stdout);
    loaded.goes_by(25.0);
    loaded.fleet.controllers().for_each(holds_nothing);
}

#[test]
fn it_can_be_turned_off() {
    let loaded = Loaded::start(1, &["--hold-back", "off"]);
    loaded.write("25/second");
    loaded.goes_by(25.0);
    counts(&loaded.fleet.controller, 0.0, 0.0);
}
