//! Those who may not: refused on both sides in clear words, counted, logged once, and dialling on with backoff.

use std::net::TcpStream;
use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{Authority, Fleet, FleetPlan, Issued, Node, Secret, connect, eventually, greet};

/// Backoff begins within a second; a few attempts are made in this time.
const TRIES: Duration = Duration::from_secs(20);

fn fleet() -> Fleet {
    FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).tls().start()
}

fn refused(node: &Node, cause: &str) -> f64 {
    node.scrape().value(&format!("headworks_tls_refused_total{{cause=\"{cause}\"}}"))
}

/// A child that is never let in.
struct Misfit {
    role: &'static str,
    parent: String,
    args: Vec<String>,
    /// What its log says.
    told: &'static str,
    /// What its parent counts.
    cause: &'static str,
}

impl Misfit {
    fn start(&self) -> Node {
        let flag = if self.role == "agent" { "--aggregators" } else { "--controllers" };
        let mut args = ["--zone", "a", flag, &self.parent].map(str::to_owned).to_vec();
        args.extend(self.args.iter().cloned());
        Node::start(self.role, "misfit", &args)
    }
}

/// It goes on trying with backoff, knows why it is refused, and its parent says it once.
#[track_caller]
fn is_refused(misfit: &Misfit, parent: &Node) {
    let before = refused(parent, misfit.cause);
    let child = misfit.start();
    eventually("it is refused again and again", TRIES, || {
        let (told, counted) = (child.says(misfit.told), refused(parent, misfit.cause) - before);
        (told < 3 || counted < 3.0)
            .then(|| format!("{:?} told {told}, {} counted {counted}", misfit.told, misfit.cause))
    });
    assert!(child.says("retry_in") < 30, "it dials in a tight loop");
    assert_eq!(child.says("INFO attached parent="), 0);
    let line = format!("cause=\"{}\"", misfit.cause);
    assert_eq!(parent.says(&line), 1, "{line} is logged once");
}

#[test]
fn misfits_are_refused_and_told_why_on_both_sides() {
    let fleet = fleet();
    let (pki, parent) = (fleet.pki.as_ref().unwrap(), &fleet.aggregators[0]);
    let stranger = Secret::new(&Authority::new("of strangers").issue("agent"), &pki.authority.pem);
    let url = parent.url("tree");
    let plain = url.replace("https", "http");
    let misfit =
        |role, parent: &str, args, told, cause| Misfit { role, parent: parent.to_owned(), args, told, cause };
    let misfits = [
        misfit("agent", &url, stranger.args(), "not in the peer's --tls-ca", "unknown-ca"),
        misfit("agent", &url, pki.aggregator.args(), "role aggregator, not agent", "wrong-role"),
        misfit("aggregator", &url, pki.aggregator.args(), "controller is needed", "refused-by-peer"),
        misfit("agent", &plain, Vec::new(), "https://", "not-tls"),
    ];
    for misfit in misfits {
        is_refused(&misfit, parent);
    }
    assert_eq!(parent.status().agents(), 1, "the agent that may is still there, and nobody else");
}

#[test]
fn a_certificate_for_one_node_lets_in_no_other() {
    let fleet = fleet();
    let (pki, parent) = (fleet.pki.as_ref().unwrap(), &fleet.aggregators[0]);
    let named = Secret::new(&pki.authority.issue("agent/somebody"), &pki.authority.pem);
    let told = "another agent than";
    let (role, parent_url, args) = ("agent", parent.url("tree"), named.args());
    is_refused(&Misfit { role, parent: parent_url, args, told, cause: "wrong-role" }, parent);
    let mut args = ["--zone", "a", "--aggregators", &parent.url("tree")].map(str::to_owned).to_vec();
    args.extend(named.args());
    let right = Node::start("agent", "somebody", &args);
    eventually("the right one is attached", TRIES, || {
        (right.status().state() != "fresh").then(|| right.status().state().to_owned())
    });
}

#[test]
fn no_certificate_an_expired_one_and_no_tls_end_in_an_alert() {
    let fleet = fleet();
    let (pki, parent) = (fleet.pki.as_ref().unwrap(), &fleet.aggregators[0]);
    let address = parent.address("tree");
    let alert =
        |own: Option<&Issued>| greet(connect(address, &pki.authority, own).unwrap()).unwrap_err().to_string();
    let none = alert(None);
    assert!(none.contains("CertificateRequired"), "{none}");
    let expired = alert(Some(&pki.authority.issue_expired("agent")));
    assert!(expired.contains("CertificateExpired"), "{expired}");
    let early = alert(Some(&pki.authority.issue_early("agent")));
    assert!(early.contains("CertificateExpired"), "{early}");
    // An alert in plain bytes, and the end; in any case no settings.
    let mut plain = TcpStream::connect(address).unwrap();
    assert!(greet(&mut plain).is_ok_and(|read| read <= 7), "settings for one who speaks no TLS");
    for cause in ["no-certificate", "expired", "not-yet-valid", "not-tls"] {
        eventually("it is counted", TRIES, || {
            let count = refused(parent, cause);
            (count < 1.0).then(|| format!("{cause}: {count}"))
        });
    }
    assert!(greet(connect(address, &pki.authority, Some(&pki.authority.issue("agent"))).unwrap()).is_ok());
}
