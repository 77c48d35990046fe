//! A fleet without processes: the core's own agents, zones and controller, driven by a clock that tests turn.

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::bucket::{BucketKey, Counts};
use headworks_core::children::ChildId;
use headworks_core::decision::{Draw, Threshold};
use headworks_core::fleet::Fleet;
use headworks_core::limits::{LimitSet, parse};
use headworks_core::message::{BucketNumber, Incarnation, Report};
use headworks_core::node::Node;
use headworks_core::units::{Headroom, Moment};
use headworks_core::zone::Zone;

pub const STEP: Duration = Duration::from_millis(50);
pub const HOLD: Duration = Duration::from_secs(60);

/// What the link between an agent and its zone does to a report.
#[derive(Clone, Copy, PartialEq)]
pub enum Mischief {
    None,
    LoseEveryThird,
    SayEverythingTwice,
}

pub struct Host {
    pub agent: Agent,
    /// Requests a second that reach it.
    pub rate: f64,
    pub zone: usize,
    pub admitted: f64,
    key: BucketKey,
    number: BucketNumber,
    counts: Counts,
    due: f64,
    headroom: Headroom,
    draw: Draw,
    child: Option<ChildId>,
    reports: u32,
    silent: bool,
}

pub struct Site {
    pub zone: Option<Zone>,
    child: Option<ChildId>,
    last_tick: Moment,
}

pub struct World {
    pub now: Moment,
    pub hosts: Vec<Host>,
    pub sites: Vec<Site>,
    pub fleet: Option<Fleet>,
    pub mischief: Mischief,
    limits: Arc<LimitSet>,
    lives: u64,
    chance: u64,
}

pub fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = (String::new(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

impl World {
    /// One zone for each inner list; a host for each rate in it; one limit, `all`, of `limit` a second.
    pub fn new(limit: u64, rates: &[&[f64]]) -> Self {
        let text = format!("limits: [{{name: all, rate: {limit}/second}}]");
        let mut world = Self {
            now: Moment::default(),
            hosts: Vec::new(),
            sites: Vec::new(),
            fleet: None,
            mischief: Mischief::None,
            limits: Arc::new(parse(&text).unwrap()),
            lives: 0,
            chance: 7,
        };
        world.start_fleet();
        for (zone, rates) in rates.iter().enumerate() {
            world.sites.push(Site { zone: None, child: None, last_tick: Moment::default() });
            world.start_zone(zone);
            rates.iter().for_each(|rate| world.add_host(zone, *rate));
        }
        world
    }

    fn next_life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    pub fn start_fleet(&mut self) {
        let identity = identity("controller", self.next_life());
        self.fleet = Some(Fleet::new(&identity, self.limits.clone(), HOLD, self.now));
    }

    pub fn start_zone(&mut self, zone: usize) {
        let mut identity = identity(&format!("aggregator-{zone}"), self.next_life());
        identity.zone = zone.to_string();
        self.sites[zone].zone = Some(Zone::new(identity, 1, HOLD, self.now));
    }

    fn add_host(&mut self, zone: usize, rate: f64) {
        let identity = identity(&format!("agent-{}", self.hosts.len()), self.next_life());
        let mut agent = Agent::new(identity, HOLD, self.now);
        let key = BucketKey::whole("all".into());
        let number = agent.open(&key, self.now).unwrap();
        self.hosts.push(Host {
            agent,
            rate,
            zone,
            admitted: 0.0,
            key,
            number,
            counts: Counts::default(),
            due: 0.0,
            headroom: Headroom::OPEN,
            draw: Draw::new(0x1234_5678),
            child: None,
            reports: 0,
            silent: false,
        });
    }

    /// The controller dies: its streams break.
    pub fn kill_fleet(&mut self) {
        self.fleet = None;
        for site in &mut self.sites {
            site.child = None;
            if let Some(zone) = &mut site.zone {
                zone.parent_detached(0);
            }
        }
    }

    /// An aggregator dies: its streams break on both sides.
    pub fn kill_zone(&mut self, zone: usize) {
        self.sites[zone].zone = None;
        if let (Some(fleet), Some(child)) = (&mut self.fleet, self.sites[zone].child.take()) {
            fleet.detach(child, self.now);
        }
        for host in self.hosts.iter_mut().filter(|host| host.zone == zone) {
            host.child = None;
            host.agent.detached();
        }
    }

    /// A host hangs: it serves nothing and says nothing, and its stream stays open.
    pub fn silence_host(&mut self, host: usize) {
        self.hosts[host].rate = 0.0;
        self.hosts[host].silent = true;
    }

    /// Lets time pass; requests admitted per second over all hosts.
    pub fn run(&mut self, time: Duration) -> f64 {
        let before: f64 = self.hosts.iter().map(|host| host.admitted).sum();
        let steps = time.as_millis() / STEP.as_millis();
        for _ in 0..steps {
            self.step();
        }
        let after: f64 = self.hosts.iter().map(|host| host.admitted).sum();
        (after - before) / time.as_secs_f64()
    }

    fn step(&mut self) {
        self.now = self.now + STEP;
        self.serve_requests();
        self.attach();
        self.report_to_zones();
        self.report_to_fleet();
        self.push_plans();
    }

    fn serve_requests(&mut self) {
        for host in &mut self.hosts {
            host.due += host.rate * STEP.as_secs_f64();
            let n = host.due.floor();
            host.due -= n;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let n = n as u32;
            let chance = &mut self.chance;
            let random = || {
                *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (*chance >> 32) as u32
            };
            let (draw, dropped) = host.draw.step_many(Threshold::of(host.headroom.drop_ratio()), n, random);
            host.draw = draw;
            host.counts.offered += u64::from(n);
            host.counts.dropped += u64::from(dropped);
            host.admitted += f64::from(n - dropped);
            host.agent.count(host.number, host.counts, self.now);
        }
    }

    fn attach(&mut self) {
        for site in &mut self.sites {
            if let (Some(zone), Some(fleet), None) = (&mut site.zone, &mut self.fleet, site.child) {
                site.child = Some(fleet.attach(zone.hello(0), self.now).child);
                zone.parent_attached(0);
            }
        }
        for host in &mut self.hosts {
            if let (Some(zone), None) = (&mut self.sites[host.zone].zone, host.child) {
                host.child = Some(zone.attach(host.agent.hello(), self.now).child);
                host.agent.attached(format!("aggregator-{}", host.zone));
            }
        }
    }

    fn report_to_zones(&mut self) {
        for host in self.hosts.iter_mut().filter(|host| !host.silent) {
            let (Some(zone), Some(child)) = (&mut self.sites[host.zone].zone, host.child) else { continue };
            let Some(report) = host.agent.report(self.now) else { continue };
            host.reports += 1;
            deliver(zone, child, &report, self.mischief, host.reports, self.now);
        }
    }

    fn report_to_fleet(&mut self) {
        let Some(fleet) = &mut self.fleet else { return };
        for site in &mut self.sites {
            if let (Some(zone), Some(child)) = (&mut site.zone, site.child)
                && let Some(report) = zone.report_for(0, self.now)
            {
                fleet.report(child, &report, self.now);
            }
        }
    }

    fn push_plans(&mut self) {
        for site in &mut self.sites {
            let heartbeat = self.now.since(site.last_tick) >= Duration::from_secs(1);
            if heartbeat {
                site.last_tick = self.now;
                if let Some(zone) = &mut site.zone {
                    zone.tick(self.now);
                }
            }
            if let (Some(fleet), Some(child), Some(zone)) = (&mut self.fleet, site.child, &mut site.zone) {
                if heartbeat {
                    fleet.tick(self.now);
                }
                if (heartbeat || fleet.has_news_for(child))
                    && let Some(plan) = fleet.plan_for(child, self.now)
                {
                    zone.plan(0, plan, self.now);
                }
            }
        }
        for host in &mut self.hosts {
            if let (Some(zone), Some(child)) = (&mut self.sites[host.zone].zone, host.child)
                && let Some(plan) = zone.plan_for(child, self.now)
            {
                host.agent.plan(plan, self.now);
            }
            // A plan that brings limits makes the bucket known under them.
            host.agent.open(&host.key, self.now);
            for (_, in_force) in host.agent.changes(self.now) {
                host.headroom = in_force.headroom;
            }
        }
    }
}

fn deliver(zone: &mut Zone, child: ChildId, report: &Report, mischief: Mischief, count: u32, now: Moment) {
    if mischief == Mischief::LoseEveryThird && count.is_multiple_of(3) {
        return;
    }
    zone.report(child, report, now);
    if mischief == Mischief::SayEverythingTwice {
        zone.report(child, report, now);
    }
}
