//! Several aggregators in one zone: agents go to another when theirs is away, come back, and are counted once throughout.

use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{Figure, LimitsFile, Load, Loads, Node, Tally, eventually, sleep_until};

/// When the first choice of the first agent is killed, and started again, in seconds of the load.
const KILLED: u64 = 6;
const RESTARTED: u64 = 14;

struct Zone {
    controller: Node,
    aggregators: Vec<Node>,
    agents: Vec<Node>,
    _limits: LimitsFile,
}

impl Zone {
    /// One zone with so many aggregators, and agents that know all of them; `args` are for both.
    fn start(aggregators: usize, agents: usize, args: &[&str]) -> Self {
        let limits = LimitsFile::new(LIMIT_400);
        let path = limits.path().display().to_string();
        let controller = Node::start("controller", "controller", &words(&["--limits", &path]));
        let controllers = controller.url("tree");
        let above = words(&[&["--zone", "a", "--controllers", &controllers], args].concat());
        let start = |number| Node::start("aggregator", &format!("aggregator-{number}"), &above);
        let aggregators: Vec<Node> = (1..=aggregators).map(start).collect();
        let urls: Vec<String> = aggregators.iter().map(|aggregator| aggregator.url("tree")).collect();
        let below = words(&[&["--zone", "a", "--aggregators", &urls.join(",")], args].concat());
        let agents = (1..=agents).map(|number| Node::start("agent", &format!("agent-{number}"), &below));
        let zone = Self { controller, aggregators, agents: agents.collect(), _limits: limits };
        zone.stands();
        zone
    }

    /// Waits until every agent has a fresh plan, and the controller hears each once.
    #[track_caller]
    fn stands(&self) {
        eventually("the controller hears all agents", Duration::from_secs(15), || {
            let heard = self.controller.try_status().map_or(0, |status| status.agents());
            (heard != self.agents.len() as u64).then(|| format!("{heard}"))
        });
        eventually("all agents have a fresh plan", Duration::from_secs(15), || {
            let mut states = self.agents.iter().map(Node::try_status);
            let lacks = states.any(|status| status.is_none_or(|status| status.state() != "fresh"));
            lacks.then(|| "some have none".to_owned())
        });
    }

    /// Whom this aggregator hears; nothing while it is away.
    fn children(&self, aggregator: usize) -> Vec<String> {
        let status = self.aggregators[aggregator].try_status();
        let children = status.iter().flat_map(|status| status.0["children"].as_array().into_iter().flatten());
        children.map(|child| child["node"].as_str().unwrap().to_owned()).collect()
    }

    fn load(&self, rps: f64, seconds: u64) -> Loads {
        let loads = self.agents.iter().map(|agent| Load::new(&agent.url("http"), rps));
        Loads::start(&loads.collect::<Vec<_>>(), Duration::from_secs(seconds))
    }

    /// A moment's figure depends on how busy the machine is; what is counted twice stays.
    #[track_caller]
    fn hears_each_once(&self, rate: f64) {
        eventually("the controller hears all demand once", Duration::from_secs(5), || {
            let (offered, _) = self.offered();
            ((offered - rate).abs() > 0.05 * rate).then(|| format!("{offered}/s, not {rate}/s"))
        });
    }

    /// Units a second that the controller hears at present, and all that it has heard.
    fn offered(&self) -> (f64, u64) {
        let status = self.controller.status();
        let limit = status.limit("checkout").unwrap();
        (limit["offered"].as_f64().unwrap(), limit["totals"]["offered"].as_u64().unwrap())
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn agents_go_to_another_aggregator_and_return_and_the_limit_is_held_throughout() {
    let mut zone = Zone::start(2, 4, &["--return-after", "1s"]);
    let first = (0..2).find(|index| zone.children(*index).contains(&"agent-1".to_owned())).unwrap();
    let preferring = zone.children(first);
    let loads = zone.load(150.0, 34);
    sleep_until(loads.second(KILLED));
    zone.aggregators[first].kill();
    eventually("all are at the other one", Duration::from_secs(6), || {
        let there = zone.children(1 - first);
        (there.len() != 4).then(|| format!("{there:?}"))
    });
    sleep_until(loads.second(RESTARTED) - Duration::from_secs(3));
    zone.hears_each_once(600.0);
    sleep_until(loads.second(RESTARTED));
    zone.aggregators[first].restart();
    eventually("those that prefer it are back", Duration::from_secs(12), || {
        let there = zone.children(first);
        (there.len() != preferring.len()).then(|| format!("{there:?}, not {preferring:?}"))
    });
    sleep_until(loads.second(28));
    zone.hears_each_once(600.0);
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted around the death\n{all}\n"), all.rate(5..14)).is_about(400.0, 0.08);
    Figure::new(&format!("admitted around the return\n{all}\n"), all.rate(14..34)).is_about(400.0, 0.04);
    let offered = all.total.attempts;
    // What the killed one had heard last and not passed on is lost, with what came until its agents had another.
    eventually("nearly all was heard of, in the end", Duration::from_secs(5), || {
        let heard = zone.offered().1;
        (heard * 100 < offered * 93).then(|| format!("{heard} of {offered}"))
    });
    let heard = zone.offered().1;
    assert!(heard <= offered, "{heard} heard of {offered}: some were counted twice");
    for agent in &zone.agents {
        assert_eq!(agent.says("plan is old"), 0, "{} was alone", agent.id);
    }
}

#[test]
fn streams_that_are_replaced_by_age_lose_nothing_and_count_nothing_twice() {
    let zone = Zone::start(1, 2, &["--max-connection-age", "2s"]);
    let loads = zone.load(300.0, 14);
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted\n{all}\n"), all.rate(3..14)).is_about(400.0, 0.04);
    eventually("every request is heard of once", Duration::from_secs(5), || {
        let heard = zone.offered().1;
        (heard != all.total.attempts).then(|| format!("{heard}, not {}", all.total.attempts))
    });
    for agent in zone.agents.iter().chain(&zone.aggregators) {
        let (attached, lost) = (agent.says("attached parent="), agent.says("not attached"));
        assert!((5..=12).contains(&attached) && lost == 0, "{}: {attached} streams, {lost} lost", agent.id);
    }
    for parent in [&zone.aggregators[0], &zone.controller] {
        assert_eq!(parent.says("another live child"), 0, "{} hears one twice", parent.id);
    }
}

#[test]
fn a_name_with_several_addresses_is_followed_to_the_one_that_answers() {
    let zone = Zone::start(1, 1, &[]);
    let port = zone.aggregators[0].address("tree").rsplit(':').next().unwrap();
    let urls = format!("http://no-such-name.invalid:7100,http://localhost:{port}");
    let agent = Node::start(
        "agent",
        "by-name",
        &words(&["--zone", "a", "--allow-plaintext", "--aggregators", &urls]),
    );
    eventually("it has a plan", Duration::from_secs(15), || {
        let state = agent.scrape().plan_state();
        (state != "fresh").then_some(state)
    });
    assert_eq!(agent.says("name does not resolve"), 1);
}
