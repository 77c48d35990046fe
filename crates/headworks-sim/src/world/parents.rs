//! Aggregators and controllers: the program's state machines, with the rounds that its driver gives them.

use std::sync::Arc;
use std::time::Duration;

use headworks_core::backoff::Backoff;
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::message::{Incarnation, Plan, Report};
use headworks_core::node::Node;
use headworks_core::units::Moment;
use headworks_core::zone::Zone;

use super::invariant;
use super::links::{Parcel, Pause, Stream, Uplink, Wire};
use super::{FLUSH, TICK, World};

/// When a parent does what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    flush_at: Duration,
    tick_at: Duration,
    pub(super) pause: Pause,
    pub(super) dirty: bool,
    /// What its clock said when the run began.
    origin: Duration,
}

/// What is due in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    Flush,
    Tick,
}

impl Rounds {
    fn new(now: Duration, phase: f64, origin: Duration) -> Self {
        let (flush_at, tick_at) = (now + FLUSH.mul_f64(phase), now + TICK.mul_f64(phase));
        Self { flush_at, tick_at, pause: Pause::default(), dirty: true, origin }
    }

    /// The clock jumps, and stops at its origin.
    pub(super) fn jump(&mut self, seconds: i64) {
        let by = Duration::from_secs(seconds.unsigned_abs());
        self.origin = if seconds < 0 { self.origin.saturating_sub(by) } else { self.origin + by };
    }

    pub(super) fn time(&self, now: Duration) -> Moment {
        Moment::after(self.origin + now)
    }

    /// After a pause each is due once.
    fn due(&mut self, now: Duration) -> Due {
        if self.pause.is_on(now) {
            return Due::Nothing;
        }
        let (flush, tick) = (now >= self.flush_at, now >= self.tick_at);
        while self.flush_at <= now {
            self.flush_at += FLUSH;
        }
        while self.tick_at <= now {
            self.tick_at += TICK;
        }
        match (tick, flush) {
            (true, _) => Due::Tick,
            (false, true) => Due::Flush,
            (false, false) => Due::Nothing,
        }
    }
}

/// A parent's end of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Downlink {
    /// The place of the child.
    pub(super) place: usize,
    pub(super) stream: Stream,
    pub(super) child: ChildId,
}

/// An aggregator's machine.
pub(super) struct Site {
    pub(super) zone: Option<Zone>,
    /// Where it stands.
    pub(super) of: usize,
    /// Tells its lives apart.
    pub(super) life: Incarnation,
    pub(super) rounds: Rounds,
    pub(super) children: Vec<Downlink>,
    /// By controller.
    pub(super) uplinks: Vec<Uplink>,
    /// By controller.
    pub(super) wires: Vec<Wire>,
    pub(super) backoff: Backoff,
}

/// A controller's machine.
pub(super) struct Controller {
    pub(super) fleet: Option<Fleet>,
    /// Tells its lives apart.
    pub(super) life: Incarnation,
    /// When this life began.
    pub(super) born: Duration,
    pub(super) rounds: Rounds,
    pub(super) children: Vec<Downlink>,
}

impl World {
    /// Clocks of parents have nothing in common: five minutes lie between one aggregator and the next.
    pub(super) fn new_site(&mut self, index: usize, of: usize) -> Site {
        let identity = self.identity(format!("aggregator-{index}-{}", self.lives), of);
        let origin = Duration::from_secs(86_400 + 300 * index as u64);
        let rounds = Rounds::new(self.now, self.chance.unit(), origin);
        let controllers = self.script.controllers;
        let life = identity.incarnation;
        let zone = Zone::new(identity, controllers, self.script.hold, rounds.time(self.now));
        Site {
            zone: Some(zone),
            of,
            life,
            rounds,
            children: Vec::new(),
            uplinks: vec![Uplink { retry_at: self.now, ..Uplink::default() }; controllers],
            wires: (0..controllers).map(|_| Wire::default()).collect(),
            backoff: Backoff::default(),
        }
    }

    pub(super) fn new_controller(&mut self, index: usize) -> Controller {
        let identity = self.identity(format!("controller-{index}-{}", self.lives), 0);
        let rounds = Rounds::new(self.now, self.chance.unit(), Duration::from_secs(1_000_000));
        let limits = Arc::new(self.script.limits.clone());
        let fleet = Fleet::new(&identity, limits, self.script.hold, rounds.time(self.now));
        let fleet = Some(fleet.with_spacing(self.script.spacing));
        Controller { fleet, life: identity.incarnation, born: self.now, rounds, children: Vec::new() }
    }

    /// One step of all parents.
    pub(super) fn live_parents(&mut self) {
        for site in 0..self.sites.len() {
            match self.sites[site].rounds.due(self.now) {
                Due::Nothing => {}
                Due::Flush => self.flush_site(site),
                Due::Tick => self.tick_site(site),
            }
        }
        for controller in 0..self.controllers.len() {
            let known = &mut self.controllers[controller];
            let due = known.rounds.due(self.now);
            let Some(fleet) = &mut known.fleet else { continue };
            if due == Due::Tick {
                fleet.tick(known.rounds.time(self.now));
                invariant::hold_for(fleet.children(), self.now);
                self.log.agents(fleet.children().agents());
                self.push_from_controller(controller, true);
            } else if due == Due::Flush && self.script.pushes && std::mem::take(&mut known.rounds.dirty) {
                self.push_from_controller(controller, false);
            }
        }
    }

    fn flush_site(&mut self, index: usize) {
        self.speak(index);
        if self.script.pushes && std::mem::take(&mut self.sites[index].rounds.dirty) {
            self.push_from_site(index, false);
        }
    }

    fn tick_site(&mut self, index: usize) {
        let site = &mut self.sites[index];
        let time = site.rounds.time(self.now);
        if let Some(zone) = &mut site.zone {
            zone.tick(time);
            invariant::hold_for(zone.children(), self.now);
        }
        self.speak(index);
        self.push_from_site(index, true);
    }

    fn speak(&mut self, index: usize) {
        let site = &mut self.sites[index];
        let time = site.rounds.time(self.now);
        let Some(zone) = &mut site.zone else { return };
        let mut reports = Vec::new();
        for (controller, uplink) in site.uplinks.iter().enumerate() {
            if let (Some((stream, _)), Some(report)) = (uplink.attached, zone.report_for(controller, time)) {
                reports.push(Parcel::SiteReport { site: index, controller, stream, report });
            }
        }
        reports.into_iter().for_each(|report| self.send(report));
    }

    fn push_from_site(&mut self, index: usize, all: bool) {
        let site = &mut self.sites[index];
        let time = site.rounds.time(self.now);
        let Some(zone) = &mut site.zone else { return };
        let mut plans = Vec::new();
        for downlink in &site.children {
            if (zone.has_news_for(downlink.child) || all && zone.owes_heartbeat(downlink.child, time))
                && let Some(plan) = zone.plan_for(downlink.child, time)
            {
                plans.push(Parcel::HostPlan { host: downlink.place, stream: downlink.stream, plan });
            }
        }
        plans.into_iter().for_each(|plan| self.send(plan));
    }

    fn push_from_controller(&mut self, index: usize, all: bool) {
        let controller = &mut self.controllers[index];
        let time = controller.rounds.time(self.now);
        let Some(fleet) = &mut controller.fleet else { return };
        let mut plans = Vec::new();
        for downlink in &controller.children {
            if (fleet.has_news_for(downlink.child) || all && fleet.owes_heartbeat(downlink.child, time))
                && let Some(plan) = fleet.plan_for(downlink.child, time)
            {
                let (site, stream) = (downlink.place, downlink.stream);
                plans.push(Parcel::SitePlan { site, controller: index, stream, plan });
            }
        }
        plans.into_iter().for_each(|plan| self.send(plan));
    }

    pub(super) fn host_report(&mut self, host: usize, stream: Stream, report: &Report) {
        let site = &mut self.sites[self.hosts[host].site];
        let Some((current, child)) = self.hosts[host].uplink.attached else { return };
        if let (true, Some(zone)) = (current == stream, &mut site.zone) {
            zone.report(child, report, site.rounds.time(self.now));
            site.rounds.dirty = true;
            if let Some(ledger) = &mut self.ledger {
                ledger.heard_of_host(host, report, zone.children());
            }
        }
    }

    pub(super) fn site_report(&mut self, site: usize, controller: usize, stream: Stream, report: &Report) {
        let known = &mut self.controllers[controller];
        let Some((current, child)) = self.sites[site].uplinks[controller].attached else { return };
        if let (true, Some(fleet)) = (current == stream, &mut known.fleet) {
            fleet.report(child, report, known.rounds.time(self.now));
            known.rounds.dirty = true;
            if let Some(ledger) = &mut self.ledger {
                ledger.heard_of_site(site, controller, report, fleet.children());
            }
        }
    }

    pub(super) fn site_plan(&mut self, index: usize, controller: usize, stream: Stream, plan: Plan) {
        let site = &mut self.sites[index];
        let current = site.uplinks[controller].attached.is_some_and(|(current, _)| current == stream);
        if let (true, Some(zone)) = (current, &mut site.zone) {
            zone.plan(controller, plan, site.rounds.time(self.now));
            site.rounds.dirty = true;
        }
    }
}
