//! Proxies that take quotas, below a zone and a fleet.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::Identity;
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::limits::parse;
use headworks_core::message::Incarnation;
use headworks_core::node::Node;
use headworks_core::quota::{Action, BucketId, LASTS, MOST_BUCKETS, Proxy, Refused, Strategy, Tokens, Usage};
use headworks_core::units::Moment;
use headworks_core::zone::Zone;

const HOLD: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);
/// Steps between two reports of a proxy.
const TICK: u32 = 250;

/// A bucket as the proxy has it.
#[derive(Default)]
struct Held {
    /// Requests a second.
    rate: f64,
    /// Parts of the next request.
    coming: f64,
    strategy: Option<(Strategy, Moment)>,
    tokens: f64,
    allowed: u64,
    denied: u64,
    /// Both, as they were told last; nothing, if the bucket is new.
    told: Option<(u64, u64)>,
}

/// A proxy's own side, as Envoy is: buckets of tokens that fill little by little, and reports of all of them every five seconds.
struct Envoy {
    proxy: Proxy,
    child: ChildId,
    held: BTreeMap<BucketId, Held>,
    ticks_at: u32,
}

impl Held {
    fn ask(&mut self, now: Moment) {
        self.coming += self.rate * STEP.as_secs_f64();
        while self.coming >= 1.0 {
            self.coming -= 1.0;
            let strategy = self.strategy.filter(|(_, at)| now.since(*at) < LASTS);
            let passes = match strategy.map(|(strategy, _)| strategy) {
                None | Some(Strategy::AllowAll) => true,
                Some(Strategy::DenyAll) => false,
                Some(Strategy::Tokens(_)) => self.tokens >= 1.0,
            };
            self.tokens -= f64::from(u8::from(passes));
            *(if passes { &mut self.allowed } else { &mut self.denied }) += 1;
        }
    }

    fn fill(&mut self) {
        if let Some((Strategy::Tokens(Tokens { most, per_fill, seconds }), _)) = self.strategy {
            let filled = f64::from(per_fill) / f64::from(seconds) * STEP.as_secs_f64();
            self.tokens = (self.tokens + filled).min(f64::from(most));
        }
    }

    /// Envoy does not compare seconds, and a bucket that is another one starts full.
    fn assign(&mut self, strategy: Strategy, now: Moment) {
        let same = match (self.strategy.map(|(before, _)| before), strategy) {
            (Some(Strategy::Tokens(before)), Strategy::Tokens(tokens)) => {
                (before.most, before.per_fill) == (tokens.most, tokens.per_fill)
            }
            (before, strategy) => before == Some(strategy),
        };
        match (same, &mut self.strategy) {
            (true, Some((_, at))) => *at = now,
            _ => {
                self.strategy = Some((strategy, now));
                if let Strategy::Tokens(tokens) = strategy {
                    self.tokens = f64::from(tokens.most);
                }
            }
        }
    }

    fn tell(&mut self) -> Usage {
        let (allowed, denied) = self.told.unwrap_or_default();
        let is_new = self.told.replace((self.allowed, self.denied)).is_none();
        Usage { allowed: self.allowed - allowed, denied: self.denied - denied, is_new }
    }
}

impl Envoy {
    fn step(&mut self, step: u32, now: Moment) {
        let ticks = step % TICK == self.ticks_at;
        for (id, held) in &mut self.held {
            held.fill();
            held.ask(now);
            let is_known = held.told.is_some();
            let is_asked = held.allowed + held.denied > 0;
            if is_known && ticks || !is_known && is_asked {
                self.proxy.usage(id.clone(), held.tell(), now).unwrap();
            }
        }
    }

    fn hear(&mut self, now: Moment) {
        for (id, action) in self.proxy.actions(now) {
            // Envoy leaves out what it does not know.
            let Some(held) = self.held.get_mut(&id) else { continue };
            match action {
                Action::Assign(strategy) => held.assign(strategy, now),
                Action::Abandon => (held.strategy, held.told, held.allowed, held.denied) = (None, None, 0, 0),
            }
        }
    }

    fn strategy(&self, id: &[(&str, &str)]) -> Option<Strategy> {
        self.held[&bucket(id)].strategy.map(|(strategy, _)| strategy)
    }
}

/// A controller, an aggregator, and proxies below it.
struct World {
    fleet: Fleet,
    zone: Zone,
    at_fleet: ChildId,
    envoys: Vec<Envoy>,
    step: u32,
}

fn identity(node: &str, life: u64) -> Identity {
    let [node, zone, region, version] = [node, "a", "", "1"].map(str::to_owned);
    Identity { node, incarnation: Incarnation(life), zone, region, version }
}

fn bucket(pairs: &[(&str, &str)]) -> BucketId {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The name of a bucket.
type Name<'a> = &'a [(&'a str, &'a str)];
/// Buckets of a proxy, with requests a second.
type Demand<'a> = &'a [(Name<'a>, f64)];

impl World {
    fn new(limits: &str, proxies: &[Demand<'_>]) -> Self {
        let now = Moment::default();
        let mut fleet = Fleet::new(&identity("controller", 1), Arc::new(parse(limits).unwrap()), HOLD, now);
        let mut zone = Zone::new(identity("zone", 2), 1, HOLD, now);
        let at_fleet = fleet.attach(zone.hello(0), now).child;
        zone.parent_attached(0);
        let envoys = proxies.iter().zip(10_u32..).map(|(_, life)| {
            let proxy =
                Proxy::new(identity(&format!("envoy-{life}"), life.into()), "lab".to_owned(), HOLD, now);
            let child = zone.attach(proxy.hello(), now).child;
            Envoy { proxy, child, held: BTreeMap::new(), ticks_at: life * 83 % TICK }
        });
        let envoys = envoys.collect();
        let mut world = Self { fleet, zone, at_fleet, envoys, step: 0 };
        world.pass(2.0);
        for (envoy, buckets) in world.envoys.iter_mut().zip(proxies) {
            let held = |rate: f64| Held { rate, ..Held::default() };
            envoy.held = buckets.iter().map(|(id, rate)| (bucket(id), held(*rate))).collect();
        }
        world
    }

    fn now(&self) -> Moment {
        Moment::after(STEP * self.step)
    }

    fn pass(&mut self, seconds: f64) {
        let until = self.now() + Duration::from_secs_f64(seconds);
        while self.now() < until {
            self.step += 1;
            let now = self.now();
            for envoy in &mut self.envoys {
                envoy.step(self.step, now);
                if let Some(report) = envoy.proxy.report(now) {
                    self.zone.report(envoy.child, &report, now);
                }
            }
            if let Some(report) = self.zone.report_for(0, now) {
                self.fleet.report(self.at_fleet, &report, now);
            }
            if self.step.is_multiple_of(50) {
                self.zone.tick(now);
                self.fleet.tick(now);
            }
            if let Some(plan) = self.fleet.plan_for(self.at_fleet, now) {
                self.zone.plan(0, plan, now);
            }
            for envoy in &mut self.envoys {
                let due = self.zone.has_news_for(envoy.child) || self.zone.owes_heartbeat(envoy.child, now);
                if due && let Some(plan) = self.zone.plan_for(envoy.child, now) {
                    assert_eq!(envoy.proxy.plan(plan, now), 0);
                }
                envoy.hear(now);
            }
        }
    }

    /// Requests a second that each proxy let pass over the next seconds.
    fn admitted(&mut self, seconds: f64) -> Vec<f64> {
        let count = |world: &Self| -> Vec<u64> {
            world.envoys.iter().map(|envoy| envoy.held.values().map(|held| held.allowed).sum()).collect()
        };
        let before = count(self);
        self.pass(seconds);
        count(self).into_iter().zip(before).map(|(after, before)| (after - before) as f64 / seconds).collect()
    }

    fn counts(&self, limit: &str, values: Values) -> Counts {
        let key = BucketKey { limit: limit.into(), scope: Vec::new(), values };
        let buckets = self.fleet.children().buckets();
        buckets.number(&key).and_then(|number| buckets.get(number)).unwrap().counts
    }

    fn whole(&self, limit: &str) -> Counts {
        self.counts(limit, Values::Of(Vec::new()))
    }
}

const CHECKOUT: Name<'_> = &[("service", "checkout")];
const LIMIT: &str = "limits: [{name: checkout, match: {service: checkout, domain: lab}, rate: 400/second}]";

#[test]
fn proxies_with_uneven_load_hold_one_limit() {
    let mut world = World::new(LIMIT, &[&[(CHECKOUT, 600.0)], &[(CHECKOUT, 150.0)]]);
    world.pass(13.0);
    let admitted = world.admitted(20.0);
    let all: f64 = admitted.iter().sum();
    assert!((all - 400.0).abs() < 12.0, "{admitted:?}");
    assert!((admitted[0] - 320.0).abs() < 12.0, "{admitted:?}");
    let counts = world.whole("checkout");
    let dropped = counts.dropped as f64 / counts.offered as f64;
    assert!((dropped - 350.0 / 750.0).abs() < 0.05, "{counts:?}");
}

#[test]
fn many_proxies_with_small_shares_hold_one_limit() {
    let proxies: Vec<Demand<'_>> = vec![&[(CHECKOUT, 4.0)]; 20];
    let limits = "limits: [{name: checkout, rate: 20/second}]";
    let mut world = World::new(limits, &proxies);
    world.pass(15.0);
    let all: f64 = world.admitted(30.0).iter().sum();
    assert!((all - 20.0).abs() < 2.0, "{all}");
}

#[test]
fn below_a_limit_nothing_is_denied_and_no_tokens_are_needed() {
    let mut world = World::new(LIMIT, &[&[(CHECKOUT, 120.0)], &[(CHECKOUT, 120.0)]]);
    world.pass(15.0);
    for envoy in &world.envoys {
        assert_eq!(envoy.strategy(CHECKOUT), Some(Strategy::AllowAll));
        assert_eq!(envoy.held[&bucket(CHECKOUT)].denied, 0);
    }
}

#[test]
fn until_its_demand_is_known_a_proxy_has_an_even_part() {
    let mut world = World::new(LIMIT, &[&[(CHECKOUT, 2000.0)], &[(CHECKOUT, 2000.0)]]);
    let admitted: f64 = world.admitted(0.9).iter().sum();
    // 200/s for each, the burst of both, and what came before they were told.
    assert!(admitted < 400.0 + 250.0, "{admitted}");
    assert!(admitted > 350.0, "{admitted}");
}

#[test]
fn a_value_that_nobody_else_has_traffic_for_is_not_divided_by_all() {
    let limits = "limits: [{name: per-user, per: [user], rate: 10/second}]";
    let user: Name<'_> = &[("user", "alice")];
    let others: Vec<String> = (0..20).map(|n| format!("user-{n}")).collect();
    let pairs: Vec<[(&str, &str); 1]> = others.iter().map(|name| [("user", name.as_str())]).collect();
    let demands: Vec<[(Name<'_>, f64); 1]> = pairs.iter().map(|pair| [(&pair[..], 1.0)]).collect();
    let mut proxies: Vec<Demand<'_>> = demands.iter().map(|demand| &demand[..]).collect();
    let alice: Demand<'_> = &[(user, 8.0)];
    proxies.push(alice);
    let mut world = World::new(limits, &proxies);
    world.pass(4.0);
    let alice = &world.envoys[20].held[&bucket(user)];
    assert!(alice.denied <= 2, "{} denied", alice.denied);
}

#[test]
fn limits_form_a_pipeline() {
    let limits = "limits:
  - {name: callers, match: {service: checkout}, per: [caller], rate: 100/second}
  - {name: checkout, match: {service: checkout}, rate: 150/second}";
    let [hog, small]: [Name<'_>; 2] =
        [&[("caller", "hog"), ("service", "checkout")], &[("caller", "small"), ("service", "checkout")]];
    let mut world = World::new(limits, &[&[(hog, 800.0), (small, 80.0)]]);
    world.pass(20.0);
    let before = world.envoys[0].held[&bucket(small)].allowed;
    let all = world.admitted(20.0)[0];
    let small = (world.envoys[0].held[&bucket(small)].allowed - before) as f64 / 20.0;
    // The hog is held to 100 before both are held to 150 of 180.
    assert!((all - 150.0).abs() < 8.0, "{all}");
    assert!((small - 67.0).abs() < 6.0, "{small}");
}

#[test]
fn shadow_denies_nothing_and_counts_what_it_would_drop() {
    let shadow = LIMIT.replace("400/second", "400/second, mode: shadow");
    let mut world = World::new(&shadow, &[&[(CHECKOUT, 800.0)]]);
    world.pass(15.0);
    let before = world.whole("checkout");
    world.pass(20.0);
    let counts = world.whole("checkout").since(before);
    assert_eq!(world.envoys[0].held[&bucket(CHECKOUT)].denied, 0);
    assert_eq!(counts.dropped, 0);
    let would_drop = counts.would_drop as f64 / counts.offered as f64;
    assert!((would_drop - 0.5).abs() < 0.02, "{would_drop}");
}

#[test]
fn the_fleets_switch_lets_all_pass_and_a_ban_none() {
    let banned = LIMIT.replace("400/second", "0/second");
    let mut world = World::new(&banned, &[&[(CHECKOUT, 100.0)]]);
    world.pass(2.0);
    assert_eq!(world.envoys[0].strategy(CHECKOUT), Some(Strategy::DenyAll));
    world.pass(5.0);
    world.fleet.throw_switch(true, 1);
    world.pass(1.0);
    assert_eq!(world.envoys[0].strategy(CHECKOUT), Some(Strategy::AllowAll));
    assert!(world.whole("checkout").dropped > 0);
}

#[test]
fn requests_that_lack_a_value_are_refused_where_the_limit_says_so() {
    let limits = "limits: [{name: per-user, per: [user], missing: drop, rate: 10/second}]";
    let mut world = World::new(limits, &[&[(CHECKOUT, 10.0), (&[("user", "a")], 1.0)]]);
    world.pass(8.0);
    assert_eq!(world.envoys[0].strategy(CHECKOUT), Some(Strategy::DenyAll));
    assert_eq!(world.envoys[0].strategy(&[("user", "a")]), Some(Strategy::AllowAll));
}

#[test]
fn a_budget_is_paid_for_what_passes() {
    let limits = "limits: [{name: exports, rate: 600/minute, burst: 600}]";
    let mut world = World::new(limits, &[&[(CHECKOUT, 100.0)]]);
    world.pass(120.0);
    let passed = world.envoys[0].held[&bucket(CHECKOUT)].allowed as f64;
    // What was saved up, and two minutes of it; late by a report.
    assert!((passed - 1800.0).abs() < 400.0, "{passed}");
}

#[test]
fn values_that_find_no_place_share_one_bucket() {
    let limits = "limits: [{name: per-user, per: [user], max_buckets: 2, rate: 10/second}]";
    let names: Vec<String> = (0..6).map(|n| format!("user-{n}")).collect();
    let pairs: Vec<[(&str, &str); 1]> = names.iter().map(|name| [("user", name.as_str())]).collect();
    let buckets: Vec<(Name<'_>, f64)> = pairs.iter().map(|pair| (&pair[..], 30.0)).collect();
    let mut world = World::new(limits, &[&buckets[..]]);
    world.pass(20.0);
    let all = world.admitted(20.0)[0];
    assert!((all - 30.0).abs() < 3.0, "{all}");
    assert!(world.counts("per-user", Values::Rest).offered > 100);
}

#[test]
fn a_bucket_without_traffic_is_given_up_and_comes_back() {
    let mut world = World::new(LIMIT, &[&[(CHECKOUT, 600.0)]]);
    world.pass(10.0);
    let rate = |world: &mut World, rate| world.envoys[0].held.get_mut(&bucket(CHECKOUT)).unwrap().rate = rate;
    rate(&mut world, 0.0);
    world.pass(70.0);
    assert_eq!(world.envoys[0].proxy.buckets(), 0);
    assert_eq!(world.envoys[0].strategy(CHECKOUT), None);
    rate(&mut world, 600.0);
    world.pass(15.0);
    let admitted = world.admitted(10.0)[0];
    assert!((admitted - 400.0).abs() < 20.0, "{admitted}");
}

#[test]
fn a_bucket_that_is_reported_no_more_counts_no_more() {
    let mut world = World::new(LIMIT, &[&[(CHECKOUT, 300.0)], &[(CHECKOUT, 300.0)]]);
    world.pass(10.0);
    world.envoys[0].held.clear();
    world.pass(20.0);
    assert_eq!(world.envoys[0].proxy.buckets(), 0);
    let admitted = world.admitted(10.0)[1];
    assert!((admitted - 300.0).abs() < 10.0, "{admitted}");
}

#[test]
fn a_proxy_that_comes_from_another_server_goes_by_what_that_told_it() {
    let mut world = World::new(LIMIT, &[&[(CHECKOUT, 600.0)]]);
    let held = world.envoys[0].held.get_mut(&bucket(CHECKOUT)).unwrap();
    held.told = Some((0, 0));
    world.pass(4.9);
    // Its first report is a part of a stretch, and of the stretch that is whole nothing is known yet.
    assert_eq!(world.envoys[0].strategy(CHECKOUT), None);
    world.pass(10.0);
    assert!(matches!(world.envoys[0].strategy(CHECKOUT), Some(Strategy::Tokens(_))));
}

#[test]
fn what_a_proxy_makes_up_is_bounded_and_forgotten() {
    let mut proxy = Proxy::new(identity("envoy", 1), "lab".to_owned(), HOLD, Moment::default());
    let usage = Usage { allowed: 1, denied: 0, is_new: true };
    let mut tell = |value: String| proxy.usage(vec![("user".to_owned(), value)], usage, Moment::default());
    for n in 0..MOST_BUCKETS {
        assert_eq!(tell(n.to_string()), Ok(()));
    }
    assert_eq!(tell("one more".to_owned()), Err(Refused::Many));
    assert_eq!(tell("x".repeat(10_000)), Err(Refused::Long));
    assert_eq!(proxy.buckets(), MOST_BUCKETS);
    let abandoned = proxy.actions(Moment::default());
    assert!(abandoned.iter().all(|(_, action)| *action == Action::Abandon));
    assert_eq!(abandoned.len(), 2);
}
