//! The switch: thrown on one controller, it holds for the whole fleet within a second, and until it is thrown back.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::{Figure, LimitsFile, Load, Loads, Node, Process, Tally, eventually};

const LIMITS: &str = "
limits:
  - {name: checkout, match: {service: checkout}, rate: 400/second}
  - {name: banned, match: {service: banned}, rate: 0/second}
";
const SECOND: Duration = Duration::from_secs(1);

/// Two controllers, and a zone of two agents whose aggregator attaches to both.
struct Pair {
    controllers: [Node; 2],
    aggregator: Node,
    agents: Vec<Node>,
    token: TempDir,
    _limits: LimitsFile,
}

impl Pair {
    fn start() -> Self {
        let (limits, token) = (LimitsFile::new(LIMITS), tempfile::tempdir().unwrap());
        fs::write(token.path().join("token"), "0123456789abcdef").unwrap();
        let file = token.path().join("token").display().to_string();
        let path = limits.path().display().to_string();
        let args = ["--limits", &path, "--admin-token-file", &file].map(str::to_owned);
        let controllers = ["c1", "c2"].map(|id| Node::start("controller", id, &args));
        let urls = controllers.each_ref().map(|node| node.url("tree")).join(",");
        let aggregator = Node::start(
            "aggregator",
            "aggregator-a",
            &["--zone", "a", "--controllers", &urls].map(str::to_owned),
        );
        let parents = aggregator.url("tree");
        let args = ["--zone", "a", "--aggregators", &parents].map(str::to_owned);
        let agents = ["a1", "a2"].map(|id| Node::start("agent", id, &args)).into();
        let pair = Self { controllers, aggregator, agents, token, _limits: limits };
        pair.hears_all();
        pair
    }

    #[track_caller]
    fn hears_all(&self) {
        eventually("both controllers hear both agents", Duration::from_secs(15), || {
            let heard =
                self.controllers.each_ref().map(|node| node.try_status().map_or(0, |status| status.agents()));
            (heard != [2, 2]).then(|| format!("{heard:?}"))
        });
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.controllers.iter().chain([&self.aggregator]).chain(&self.agents)
    }

    /// What `headworks shadow-all` says of one controller.
    fn ask(&self, controller: usize, state: &[&str]) -> String {
        let (url, file) = (self.controllers[controller].url("admin"), self.token.path().join("token"));
        let file = file.display().to_string();
        let args = [&["shadow-all"], state, &["--admin", &url, "--token-file", &file]].concat();
        let ended = Process::run(args, Duration::from_secs(5));
        assert!(ended.status.success(), "{}", ended.stderr);
        ended.stdout
    }

    /// Throws it on one controller; every node has it within a second.
    #[track_caller]
    fn throw(&self, controller: usize, state: &str) {
        let told = self.ask(controller, &[state]);
        assert!(told.contains("1 of 1 controllers took it"), "{told}");
        let thrown = Instant::now();
        self.all_are(state == "on", SECOND);
        eprintln!("{state} after {:?}", thrown.elapsed());
    }

    #[track_caller]
    fn all_are(&self, on: bool, limit: Duration) {
        eventually("every node has the switch", limit, || {
            let others = self
                .nodes()
                .filter(|node| node.try_status().is_none_or(|status| status.0["shadow_all"] != on));
            let others: Vec<&str> = others.map(|node| node.id.as_str()).collect();
            (!others.is_empty()).then(|| format!("{others:?} have not"))
        });
    }

    fn is_banned(&self) -> bool {
        self.agents[0].get("http", "/allow?key=K&service=banned").unwrap().status == 429
    }
}

fn rest(loads: &Loads) -> usize {
    loads.second_from(Instant::now())
}

#[test]
fn it_reaches_the_fleet_within_a_second_and_survives_a_restart() {
    let mut pair = Pair::start();
    let urls = pair.agents.iter().map(|agent| Load::new(&agent.url("http"), 300.0)).collect::<Vec<_>>();
    let loads = Loads::start(&urls, Duration::from_secs(32));
    std::thread::sleep(5 * SECOND);
    assert!(pair.is_banned());

    pair.throw(0, "on");
    let on = rest(&loads) + 1;
    assert!(!pair.is_banned());
    for node in pair.nodes() {
        Figure::new(&node.id, node.scrape().value("headworks_shadow_all")).is_near(1.0, 0.0);
        assert_eq!(node.says("shadow-all is on"), 1, "{}", node.id);
    }
    assert!(pair.ask(1, &[]).contains("shadow-all is on"));
    let table = Process::run(["status", "--admin", &pair.agents[1].url("admin")], 5 * SECOND).stdout;
    assert!(table.contains("shadow-all is on"), "{table}");

    std::thread::sleep(2 * SECOND);
    pair.controllers[0].kill();
    pair.controllers[0].restart();
    pair.hears_all();
    pair.all_are(true, SECOND);
    assert!(!pair.is_banned());
    let off = rest(&loads) - 1;

    pair.throw(1, "off");
    assert!(pair.is_banned());
    let after = rest(&loads) + 3;
    let tally = Tally::sum(&loads.finish());
    tally.has_no_errors();
    assert_eq!(tally.during(on..off).denied, 0, "{tally}");
    Figure::new(&format!("admitted a second before\n{tally}\n"), tally.rate(3..5)).is_about(400.0, 0.1);
    Figure::new(&format!("admitted a second after\n{tally}\n"), tally.rate(after..after + 4))
        .is_about(400.0, 0.05);
    let would_drop =
        pair.agents.iter().map(|agent| agent.scrape().of_limit("headworks_would_drop_total", "checkout"));
    let part = would_drop.sum::<f64>() / (600.0 * (off - on) as f64);
    assert!(part > 0.25, "only {part} of the offered was counted as what would be dropped");
}

#[test]
fn what_is_wrong_is_told_with_the_right_exit_code() {
    let pair = Pair::start();
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (away, here) = (format!("http://{unused}"), pair.controllers[0].url("admin"));
    let (agent, file) = (pair.agents[0].url("admin"), pair.token.path().join("token"));
    let (file, both) = (file.display().to_string(), format!("{here},{away}"));
    let table: [(&[&str], i32, &str); 8] = [
        (&["maybe"], 64, "on, off"),
        (&["on", "--admin", "localhost"], 64, "--admin"),
        (&["on", "--token-file", "/nonexistent/token"], 64, "/nonexistent/token"),
        (&["on", "--admin", &here], 1, "--token-file"),
        (&["on", "--admin", &away, "--token-file", &file], 1, "none of 1 controllers took it"),
        (&["--admin", &away], 1, &away),
        (&["--admin", &agent], 1, "a controller"),
        (&["off", "--admin", &both, "--token-file", &file], 1, "1 of 2 controllers took it"),
    ];
    for (args, code, told) in table {
        let ended = Process::run([&["shadow-all"], args].concat(), Duration::from_secs(5));
        assert_eq!(ended.status.code(), Some(code), "{args:?} said\n{}", ended.stderr);
        assert!(ended.stderr.contains(told), "{args:?} does not say {told:?}, but\n{}", ended.stderr);
    }
    assert!(pair.ask(1, &[]).contains("shadow-all is off"));
}
