//! Mutual TLS between the tiers: the limit holds over it, and certificates change under load.

use std::path::Path;
use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{
    Authority, Figure, Fleet, FleetPlan, Issued, Node, Process, Tally, eventually, shown_serial, sleep_until,
};

/// How long a new certificate may take to be shown; the files are looked at every second.
const SHOWN: Duration = Duration::from_secs(30);

#[test]
fn a_fleet_over_mutual_tls_holds_its_limit() {
    let fleet = FleetPlan::new(LIMIT_400).tls().start();
    let tallies = fleet.load(&[150.0; 4], Duration::from_secs(15)).finish();
    let all = Tally::sum(&tallies);
    all.has_no_errors();
    Figure::new(&format!("admitted a second\n{all}\n"), all.rate(5..15)).is_about(400.0, 0.04);
}

/// An agent of the fleet whose own ports are served over TLS too.
fn agent_with_secure_ports(fleet: &Fleet) -> Node {
    let parents = fleet.aggregators[0].url("tree");
    let mut args =
        ["--zone", "a", "--aggregators", &parents, "--http-tls", "--admin-tls"].map(str::to_owned).to_vec();
    args.extend(fleet.pki.as_ref().unwrap().agent.args());
    Node::start("agent", "secure", &args)
}

/// Puts new certificates into the files of every role, and tells which.
fn rotate(fleet: &Fleet) -> [(&'static str, Issued); 3] {
    let pki = fleet.pki.as_ref().unwrap();
    ["agent", "aggregator", "controller"].map(|role| {
        let issued = pki.authority.issue(role);
        pki.of(role).swap(&issued.cert, &issued.key, &pki.authority.pem);
        (role, issued)
    })
}

#[track_caller]
fn shows(authority: &Authority, address: &str, issued: &Issued) {
    eventually("the new certificate is shown", SHOWN, || {
        let shown = shown_serial(address, authority);
        (shown.as_ref() != Some(&issued.serial)).then(|| format!("{address} shows {shown:?}"))
    });
}

#[track_caller]
fn clients_ask_over_tls(fleet: &Fleet, node: &Node) {
    let ca = fleet.pki.as_ref().unwrap().agent.path("ca.crt").display().to_string();
    let url = format!("https://{}", node.address("admin"));
    let told = Process::run(["status", "--admin", &url, "--tls-ca", &ca], Duration::from_secs(5));
    assert!(told.status.success() && told.stdout.contains("checkout"), "{}{}", told.stdout, told.stderr);
    let told = Process::run(["status", "--admin", &url], Duration::from_secs(5));
    assert!(told.status.code() == Some(64) && told.stderr.contains("--tls-ca"), "{}", told.stderr);
    let url = format!("https://{}", node.address("http"));
    let load = ["load", "--target", &url, "--key", "K", "--rps", "50", "--duration", "1s"];
    let asked = Process::run(load.iter().chain(&["--tls-ca", &ca]), Duration::from_secs(15));
    assert!(
        asked.status.success() && asked.stdout.contains("errors     0"),
        "{}{}",
        asked.stdout,
        asked.stderr
    );
    let asked = Process::run(load, Duration::from_secs(15));
    assert!(asked.status.code() == Some(64) && asked.stderr.contains("--tls-ca"), "{}", asked.stderr);
}

#[test]
fn new_certificates_are_shown_on_every_port_and_open_streams_stay() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 2)]).tls().start();
    let secure = agent_with_secure_ports(&fleet);
    let authority = &fleet.pki.as_ref().unwrap().authority;
    let loads = fleet.load(&[300.0; 2], Duration::from_secs(15));
    sleep_until(loads.second(5));
    let [(_, agent), (_, aggregator), (_, controller)] = rotate(&fleet);
    shows(authority, fleet.aggregators[0].address("tree"), &aggregator);
    shows(authority, fleet.controller.address("tree"), &controller);
    shows(authority, secure.address("http"), &agent);
    shows(authority, secure.address("admin"), &agent);
    clients_ask_over_tls(&fleet, &secure);
    // One that comes now dials, and is let in, with what is new.
    let newcomer = agent_with_secure_ports(&fleet);
    eventually("the newcomer is attached", SHOWN, || {
        (newcomer.says("attached parent=\"https") == 0).then(|| "not yet".to_owned())
    });
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted a second\n{all}\n"), all.rate(5..15)).is_about(400.0, 0.05);
    for node in fleet.agents.iter().chain(&fleet.aggregators) {
        assert_eq!(node.says(" attached parent="), 1, "{} stays attached", node.id);
        assert_eq!(node.says("not attached"), 0, "{} stays attached", node.id);
    }
}

fn reload_errors(node: &Node) -> f64 {
    node.scrape().value("headworks_tls_reload_errors_total")
}

#[test]
fn a_broken_pair_leaves_the_old_certificate_in_force() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).tls().start();
    let pki = fleet.pki.as_ref().unwrap();
    let (parent, authority) = (&fleet.aggregators[0], &pki.authority);
    let before = shown_serial(parent.address("tree"), authority).unwrap();
    let expires = parent.scrape().value("headworks_tls_certificate_expires_timestamp_seconds");
    let (one, other) = (authority.issue("aggregator"), authority.issue("aggregator"));
    pki.aggregator.swap(&one.cert, &other.key, &authority.pem);
    eventually("the broken pair is counted", SHOWN, || {
        (reload_errors(parent) < 1.0).then(|| "not yet".to_owned())
    });
    assert_eq!(shown_serial(parent.address("tree"), authority), Some(before));
    assert_eq!(parent.scrape().value("headworks_tls_certificate_expires_timestamp_seconds"), expires);
    assert!(parent.says("belongs to another certificate") == 1, "it says once what is wrong");
    pki.aggregator.swap(&one.cert, &one.key, &authority.pem);
    shows(authority, parent.address("tree"), &one);
    assert_eq!(reload_errors(parent), 1.0);
}

/// What `headworks certs dev` writes, as flags of a role.
fn made_by_certs_dev(folder: &Path, role: &str) -> Vec<String> {
    let path = |name: String| folder.join(name).display().to_string();
    let (cert, key, ca) =
        (path(format!("{role}.crt")), path(format!("{role}.key")), path("ca.crt".to_owned()));
    ["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &ca].map(str::to_owned).to_vec()
}

#[test]
fn certificates_for_development_join_nodes_and_are_not_replaced_by_accident() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("certs");
    let command =
        ["certs", "dev", "--out", &out.display().to_string(), "--host", "aggregator.test"].map(str::to_owned);
    let made = Process::run(&command, Duration::from_secs(5));
    assert!(made.status.success() && made.stdout.contains("--tls-ca"), "{}{}", made.stdout, made.stderr);
    for name in ["ca", "agent", "aggregator", "controller"] {
        let mode = out.join(format!("{name}.key")).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}.key");
    }
    let again = Process::run(&command, Duration::from_secs(5));
    assert!(again.status.code() == Some(64) && again.stderr.contains("--force"), "{}", again.stderr);

    let mut args = ["--zone", "a", "--controllers", "https://127.0.0.1:1"].map(str::to_owned).to_vec();
    args.extend(made_by_certs_dev(&out, "aggregator"));
    let aggregator = Node::start("aggregator", "aggregator", &args);
    let mut args = ["--zone", "a", "--aggregators", &aggregator.url("tree")].map(str::to_owned).to_vec();
    args.extend(made_by_certs_dev(&out, "agent"));
    let agent = Node::start("agent", "agent", &args);
    eventually("the agent is attached", SHOWN, || {
        (agent.says("attached parent=\"https") == 0).then(|| "not yet".to_owned())
    });
}
