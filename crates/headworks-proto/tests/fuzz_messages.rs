//! Whatever bytes a peer sends: what decodes is taken in by the state machines without a panic, nothing in them stops
//! being a number, and what they say next is understood by their like.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

#[allow(dead_code, reason = "only reads")]
mod committed;

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::{ChildId, Children};
use headworks_core::fleet::Fleet;
use headworks_core::invariant::headroom_is_sound;
use headworks_core::limits::{LimitSet, parse};
use headworks_core::message::{Incarnation, Plan, Report};
use headworks_core::node::Node;
use headworks_core::status;
use headworks_core::units::Moment;
use headworks_core::zone::Zone;
use headworks_proto::{FromChild, decode_child, decode_plan, plan_message, report_message, wire};
use prost::Message;

const HOLD: Duration = Duration::from_secs(60);
const LIMITS: &str = "
limits:
  - {name: per-host, match: {path: /}, per: [host, method], rate: 1000/second, max_buckets: 300}
  - {name: tried, rate: 20/second, mode: shadow}
  - {name: exported, rate: 1000/hour, burst: 300}
  - {name: counted, rate: unlimited}
  - {name: banned, match: {user: mallory}, rate: 0/second}
";

fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = ("z".to_owned(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

/// A parent, and the stream that said hello to it last.
struct Parent<N> {
    node: N,
    child: Option<ChildId>,
}

impl<N: Node> Parent<N> {
    /// Takes in what a child says; what kind of thing it was.
    fn hear(&mut self, bytes: &[u8], now: Moment) -> u8 {
        let Ok(message) = wire::ChildMessage::decode(bytes) else { return 0 };
        match (decode_child(message), self.child) {
            (Ok(FromChild::Hello(hello)), _) => {
                self.child = Some(self.node.attach(hello, now).child);
                1
            }
            (Ok(FromChild::Report { report, refused }), Some(child)) => {
                let received = self.node.report(child, &report, now);
                2 + u8::from(refused > 0) + 2 * u8::from(received.refused > 0)
            }
            (Ok(FromChild::Goodbye), Some(child)) => {
                self.node.detach(child, now);
                6
            }
            (Ok(_), None) => 7,
            (Err(_), _) => 8,
        }
    }

    /// What the last child hears next, as it arrives.
    fn plan(&mut self, now: Moment) -> Option<Plan> {
        let child = self.child?;
        self.node.plan_for(child, now).map(|plan| arrived_plan(&plan))
    }
}

#[track_caller]
fn arrived_plan(plan: &Plan) -> Plan {
    let (arrived, refused) = decode_plan(plan_message(plan)).unwrap();
    assert_eq!(refused, 0, "a node would refuse what its like says: {plan:?}");
    arrived
}

#[track_caller]
fn arrived_report(report: &Report) -> Report {
    match decode_child(report_message(report)) {
        Ok(FromChild::Report { report, refused: 0 }) => report,
        other => panic!("a node would refuse what its like says: {other:?} of {report:?}"),
    }
}

/// A controller, an aggregator that has two, and an agent, each also hearing what the input says.
struct World {
    now: Moment,
    fleet: Parent<Fleet>,
    zone: Parent<Zone>,
    agent: Agent,
}

impl World {
    fn new(limits: &Arc<LimitSet>) -> Self {
        let now = Moment::default();
        let fleet = Fleet::new(&identity("controller", 1), limits.clone(), HOLD, now);
        let mut zone = Zone::new(identity("zone", 2), 2, HOLD, now);
        [0, 1].into_iter().for_each(|parent| zone.parent_attached(parent));
        let mut agent = Agent::new(identity("agent", 3), HOLD, now);
        agent.attached("zone".to_owned());
        let (fleet, zone) = (Parent { node: fleet, child: None }, Parent { node: zone, child: None });
        Self { now, fleet, zone, agent }
    }

    fn step(&mut self, kind: u8, bytes: &[u8]) -> u8 {
        match kind % 8 {
            0 => self.fleet.hear(bytes, self.now),
            1 => self.zone.hear(bytes, self.now),
            2 | 3 => self.plan_to_zone(usize::from(kind % 2), bytes),
            4 => self.plan_to_agent(bytes),
            5 => self.pass(bytes),
            6 => self.exchange(),
            _ => self.throw(bytes),
        }
    }

    fn plan_to_zone(&mut self, parent: usize, bytes: &[u8]) -> u8 {
        let Some((plan, refused)) = heard(bytes) else { return 10 };
        self.zone.node.plan(parent, plan, self.now);
        11 + u8::from(refused > 0)
    }

    fn plan_to_agent(&mut self, bytes: &[u8]) -> u8 {
        let Some((plan, refused)) = heard(bytes) else { return 20 };
        let effects = self.agent.plan(plan, self.now);
        self.count();
        21 + u8::from(refused > 0)
            + 2 * u8::from(effects.unknown > 0)
            + 4 * u8::from(effects.limits.is_some())
    }

    /// Requests meet every limit that the agent knows.
    fn count(&mut self) {
        let limits = self.agent.limits().clone();
        for (index, limit) in limits.limits().iter().take(20).enumerate() {
            let values = Values::Of(limit.per.iter().map(|_| "v".to_owned()).collect());
            let key = BucketKey { limit: limit.name.clone(), scope: Vec::new(), values };
            if let Some(number) = self.agent.open(&key, self.now) {
                let offered = self.now.since(Moment::default()).as_secs() * (index as u64 + 1);
                let counts =
                    Counts { offered, dropped: offered / 3, would_drop: 0, refused_later: offered / 7 };
                self.agent.count(number, counts, self.now);
            }
        }
    }

    fn pass(&mut self, bytes: &[u8]) -> u8 {
        let millis = bytes.iter().take(2).fold(0_u64, |time, byte| time << 8 | u64::from(*byte));
        self.now = self.now + Duration::from_millis(millis);
        self.fleet.node.tick(self.now);
        self.zone.node.tick(self.now);
        30
    }

    /// Everybody tells everybody what is due.
    fn exchange(&mut self) -> u8 {
        self.count();
        if let (Some(report), Some(child)) = (self.agent.report(self.now), self.zone.child) {
            self.zone.node.report(child, &arrived_report(&report), self.now);
        }
        for parent in [0, 1] {
            if let (Some(report), Some(child)) =
                (self.zone.node.report_for(parent, self.now), self.fleet.child)
            {
                self.fleet.node.report(child, &arrived_report(&report), self.now);
            }
            if let Some(plan) = self.fleet.plan(self.now) {
                self.zone.node.plan(parent, plan, self.now);
            }
        }
        if let Some(plan) = self.zone.plan(self.now) {
            self.agent.plan(plan, self.now);
        }
        40
    }

    fn throw(&mut self, bytes: &[u8]) -> u8 {
        self.fleet.node.throw_switch(bytes.first().is_some_and(|byte| byte % 2 == 1), 0);
        50
    }

    fn is_sound(&mut self) {
        parent_is_sound(self.fleet.node.children(), self.fleet.node.limits());
        parent_is_sound(self.zone.node.children(), self.zone.node.limits());
        assert!(self.fleet.node.view().demand.is_finite());
        let _ = self.zone.node.plan_state(self.now);
        for (_, in_force) in self.agent.changes(self.now) {
            assert!(headroom_is_sound(in_force.headroom), "{in_force:?}");
            let allowance =
                in_force.allowance.map_or((0.0, 0.0), |allowance| (allowance.rate, allowance.depth));
            assert!(allowance.0 >= 0.0 && allowance.1 >= 0.0, "{in_force:?}");
        }
    }
}

fn heard(bytes: &[u8]) -> Option<(Plan, u32)> {
    decode_plan(wire::ParentMessage::decode(bytes).ok()?).ok()
}

fn parent_is_sound(children: &Children, limits: &LimitSet) {
    for (_, key, bucket) in children.buckets().iter() {
        assert!(bucket.demand.is_finite() && bucket.demand >= 0.0, "{key:?}: {bucket:?}");
        assert!(bucket.headroom.is_none_or(headroom_is_sound), "{key:?}: {bucket:?}");
        assert!(bucket.tokens.is_none_or(f64::is_finite), "{key:?}: {bucket:?}");
    }
    for limit in status::limits(limits, children) {
        let rates = [limit.offered, limit.dropped, limit.would_drop];
        assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{limit:?}");
        assert!((0.0..=1.0).contains(&limit.ratio.value()), "{limit:?}");
    }
    let _ = status::zones(children);
}

/// One step of an input: its kind, two bytes of length, and what is said.
fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_le_bytes();
    [&[kind], &length[..], bytes].concat()
}

fn frames(mut input: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let [kind, low, high, rest @ ..] = input {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (bytes, after) = rest.split_at(length);
        frames.push((*kind, bytes));
        input = after;
    }
    frames
}

fn golden(name: &str) -> Vec<u8> {
    let text = committed::read(&format!("golden/{name}.hex"));
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// A conversation of sound messages at each place, and one of the nodes among themselves.
fn corpus() -> Vec<Vec<u8>> {
    let children = [
        "hello",
        "report_full",
        "report_early",
        "report_news",
        "hello_switch",
        "report_switch",
        "report_full",
    ];
    let plans = ["plan", "plan_budgets", "plan_switch"];
    let said = |kind: u8, names: &[&str]| -> Vec<u8> {
        let pause = [frame(5, &[3, 232]), frame(6, &[])].concat();
        names.iter().flat_map(|name| [frame(kind, &golden(name)), pause.clone()].concat()).collect()
    };
    let hello = |kind, name| frame(kind, &golden(name));
    let greeting = [hello(0, "hello_switch"), hello(1, "hello")].concat();
    let among_themselves = [frame(6, &[]), frame(5, &[3, 232]), frame(7, &[1])].concat().repeat(4);
    vec![
        said(0, &children),
        said(1, &children),
        said(2, &plans),
        said(3, &plans),
        said(4, &plans),
        [greeting.clone(), among_themselves].concat(),
        [greeting, said(2, &plans), said(1, &children), said(0, &["goodbye"])].concat(),
    ]
}

#[test]
fn no_message_makes_a_node_panic_or_unsound() {
    let limits = Arc::new(parse(LIMITS).unwrap());
    let words: Vec<Vec<u8>> = (0..8).map(|kind| frame(kind, &[3, 232])).collect();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let ran = headworks_fuzz::run("messages of peers", corpus(), &words, |input| {
        let mut world = World::new(&limits);
        let mut kinds = Vec::new();
        for (kind, bytes) in frames(input).into_iter().take(64) {
            kinds.push(world.step(kind, bytes));
            world.is_sound();
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    });
    assert!(ran.inputs > 500 && ran.kinds > 20, "{ran:?}");
}

#[test]
fn every_sound_message_of_the_corpus_is_taken() {
    for input in corpus() {
        for (kind, bytes) in frames(&input) {
            let taken = match kind {
                0 | 1 => wire::ChildMessage::decode(bytes).is_ok_and(|message| decode_child(message).is_ok()),
                2..=4 => heard(bytes).is_some(),
                _ => true,
            };
            assert!(taken, "{kind}: {bytes:?}");
        }
    }
}
