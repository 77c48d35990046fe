//! Limits that hold for each zone or each region by itself.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::limits::{LimitSet, parse};
use headworks_core::message::{BucketNumber, Incarnation};
use headworks_core::node::Node;
use headworks_core::units::Moment;
use headworks_core::zone::Zone;

const HOLD: Duration = Duration::from_secs(60);

/// A zone with one agent.
struct Site {
    zone: Zone,
    agent: Agent,
    at_fleet: ChildId,
    at_zone: ChildId,
    bucket: Option<BucketNumber>,
    rate: u64,
    offered: u64,
    ratio: f64,
}

/// A fleet of zones, by region and name, with what each is offered.
struct Tree {
    fleet: Option<Fleet>,
    sites: Vec<Site>,
    second: u64,
}

fn identity(node: &str, life: u64, region: &str, zone: &str) -> Identity {
    let [node, zone, region, version] = [node, zone, region, "1"].map(str::to_owned);
    Identity { node, incarnation: Incarnation(life), zone, region, version }
}

impl Tree {
    fn new(limits: &str, zones: &[(&str, &str, u64)]) -> Self {
        let now = Moment::default();
        let limits = Arc::new(parse(limits).unwrap());
        let mut fleet = Fleet::new(&identity("controller", 1, "", ""), limits, HOLD, now);
        let sites = zones.iter().zip(10..).map(|((region, name, rate), life)| {
            let mut zone = Zone::new(identity(&format!("of-{life}"), life, region, name), 1, HOLD, now);
            // Agents need not know their region.
            let mut agent = Agent::new(identity(&format!("agent-{life}"), life + 100, "", name), HOLD, now);
            let at_fleet = fleet.attach(zone.hello(0), now).child;
            zone.parent_attached(0);
            let at_zone = zone.attach(agent.hello(), now).child;
            agent.attached("of".to_owned());
            Site { zone, agent, at_fleet, at_zone, bucket: None, rate: *rate, offered: 0, ratio: 0.0 }
        });
        let sites = sites.collect();
        Self { fleet: Some(fleet), sites, second: 0 }
    }

    fn pass(&mut self, seconds: u64, key: &BucketKey) {
        for _ in 0..seconds {
            self.second += 1;
            let now = Moment::after(Duration::from_secs(self.second));
            self.sites.iter_mut().for_each(|site| site.below(key, now));
            for site in &mut self.sites {
                let report = site.zone.report_for(0, now);
                if let (Some(report), Some(fleet)) = (report, &mut self.fleet) {
                    fleet.report(site.at_fleet, &report, now);
                }
            }
            if let Some(fleet) = &mut self.fleet {
                fleet.tick(now);
                for site in &mut self.sites {
                    site.zone.plan(0, fleet.plan_for(site.at_fleet, now).unwrap(), now);
                }
            }
            self.sites.iter_mut().for_each(|site| site.plan(now));
        }
    }

    /// What passes in each zone, a second.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred")]
    fn admitted(&self) -> Vec<u64> {
        let admitted = |site: &Site| (site.rate as f64 * (1.0 - site.ratio)).round() as u64;
        self.sites.iter().map(admitted).collect()
    }
}

impl Site {
    fn below(&mut self, key: &BucketKey, now: Moment) {
        if !self.agent.limits().limits().is_empty() {
            let number = self.agent.open(key, now).unwrap();
            self.bucket = Some(number);
            self.offered += self.rate;
            self.agent.count(number, Counts { offered: self.offered, ..Counts::default() }, now);
        }
        if let Some(report) = self.agent.report(now) {
            let received = self.zone.report(self.at_zone, &report, now);
            assert_eq!(received.refused, 0);
        }
        self.zone.tick(now);
    }

    fn plan(&mut self, now: Moment) {
        if let Some(plan) = self.zone.plan_for(self.at_zone, now) {
            assert_eq!(self.agent.plan(plan, now).unknown, 0);
        }
        for (number, in_force) in self.agent.changes(now) {
            if Some(number) == self.bucket {
                self.ratio = in_force.headroom.drop_ratio().value();
            }
        }
    }
}

fn of(value: &str) -> BucketKey {
    BucketKey { limit: "l".into(), scope: Vec::new(), values: Values::Of(vec![value.to_owned()]) }
}

/// Two regions; `east` has two zones, and both regions have one of the name `a`.
const ZONES: [(&str, &str, u64); 3] = [("east", "a", 300), ("east", "b", 100), ("west", "a", 300)];

#[test]
fn each_zone_holds_the_limit_by_itself() {
    let mut tree = Tree::new("limits: [{name: l, rate: 80/second, scope: zone}]", &ZONES);
    tree.pass(20, &BucketKey::whole("l".into()));
    assert_eq!(tree.admitted(), [80, 80, 80]);
}

#[test]
fn zones_of_one_region_share_its_limit() {
    let mut tree = Tree::new("limits: [{name: l, rate: 80/second, scope: region}]", &ZONES);
    tree.pass(20, &BucketKey::whole("l".into()));
    assert_eq!(tree.admitted(), [60, 20, 80]);
}

#[test]
fn values_are_told_apart_in_each_zone() {
    let mut tree = Tree::new("limits: [{name: l, per: [who], rate: 150/second, scope: zone}]", &ZONES);
    tree.pass(20, &of("x"));
    assert_eq!(tree.admitted(), [150, 100, 150]);
    let fleet = tree.fleet.as_ref().unwrap();
    let mut scopes: Vec<_> =
        fleet.children().buckets().iter().map(|(_, key, _)| key.scope.join("/")).collect();
    scopes.sort();
    assert_eq!(scopes, ["east/a", "east/b", "west/a"]);
}

#[test]
fn a_zone_goes_on_holding_its_own_limit_without_controllers() {
    let mut tree = Tree::new("limits: [{name: l, rate: 80/second, scope: zone}]", &ZONES);
    let whole = BucketKey::whole("l".into());
    tree.pass(20, &whole);
    tree.fleet = None;
    tree.sites.iter_mut().for_each(|site| site.zone.parent_detached(0));
    (tree.sites[0].rate, tree.sites[1].rate) = (600, 50);
    tree.pass(20, &whole);
    assert_eq!(tree.admitted(), [80, 50, 80]);
}

#[test]
fn a_limit_of_another_scope_counts_anew() {
    let mut tree = Tree::new("limits: [{name: l, rate: 80/second}]", &ZONES);
    let whole = BucketKey::whole("l".into());
    tree.pass(10, &whole);
    for (scope, admitted) in [("zone", [80, 80, 80]), ("region", [60, 20, 80]), ("global", [34, 11, 34])] {
        let text = format!("limits: [{{name: l, rate: 80/second, scope: {scope}}}]");
        let now = Moment::after(Duration::from_secs(tree.second));
        tree.fleet.as_mut().unwrap().install(Arc::new(parse(&text).unwrap()), now);
        tree.sites.iter_mut().for_each(|site| site.offered = 0);
        tree.pass(20, &whole);
        assert_eq!(tree.admitted(), admitted, "{scope}");
    }
}

#[test]
fn the_narrower_scope_goes_first_among_limits_with_as_many_keys() {
    let set: LimitSet = parse(
        "limits:
          - {name: a, rate: 1/second, match: {x: y, z: w}}
          - {name: b, rate: 1/second, scope: region}
          - {name: c, rate: 1/second, scope: zone}
          - {name: d, rate: 1/second, per: [k]}",
    )
    .unwrap();
    let names: Vec<&str> = set.limits().iter().map(|limit| &*limit.name).collect();
    assert_eq!(names, ["d", "c", "b", "a"]);
}
