//! A fleet in which time is a number: the program's own state machines, and around them all that a scenario does.

mod fault;
mod host;
mod invariant;
mod links;
mod load;
mod parents;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::Identity;
use headworks_core::message::Incarnation;

use crate::chance::Chance;
use crate::log::Log;
use crate::script::{Event, Script};
use host::Host;
use links::{Links, Parcel};
use load::Load;
use parents::{Controller, Site};

/// Time between two rounds of an agent.
const BEAT: Duration = Duration::from_millis(50);
/// Time between two rounds of a parent.
const FLUSH: Duration = Duration::from_millis(20);
/// Time between two ticks of a parent.
const TICK: Duration = Duration::from_secs(1);

/// A fleet at one point of its life.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) log: Log,
    script: Arc<Script>,
    events: VecDeque<(Duration, Event)>,
    load: Load,
    hosts: Vec<Host>,
    sites: Vec<Site>,
    controllers: Vec<Controller>,
    links: Links,
    chance: Chance,
    lives: u64,
    next_replaced: usize,
}

impl World {
    pub(crate) fn new(script: &Arc<Script>) -> Self {
        let mut chance = Chance::seeded(script.seed);
        let mut world = Self {
            now: Duration::ZERO,
            log: Log::new(script),
            events: script.events.iter().cloned().collect(),
            load: Load::new(script),
            hosts: Vec::new(),
            sites: Vec::new(),
            controllers: Vec::new(),
            links: Links::new(script, chance.fork()),
            script: script.clone(),
            chance,
            lives: 0,
            next_replaced: 0,
        };
        for index in 0..script.controllers {
            let controller = world.new_controller(index);
            world.controllers.push(controller);
        }
        for (index, hosts) in script.zones.iter().enumerate() {
            let site = world.new_site(index);
            world.sites.push(site);
            for _ in 0..*hosts {
                let host = world.new_host(world.hosts.len(), index);
                world.hosts.push(host);
            }
        }
        world
    }

    fn identity(&mut self, node: String, zone: usize) -> Identity {
        self.lives += 1;
        Identity {
            node,
            incarnation: Incarnation(self.lives),
            zone: zone.to_string(),
            region: String::new(),
            version: String::new(),
        }
    }

    /// Lives through the whole scenario; `progress` hears how much of it is over.
    pub(crate) fn run(&mut self, mut progress: impl FnMut(f64)) {
        let length = self.script.length;
        let mut told = 0;
        while self.now < length {
            self.step();
            let percent = self.now.as_millis() * 100 / length.as_millis().max(1);
            if percent > told {
                told = percent;
                progress(self.now.as_secs_f64() / length.as_secs_f64());
            }
        }
    }

    fn step(&mut self) {
        while self.events.front().is_some_and(|(time, _)| *time <= self.now) {
            if let Some((_, event)) = self.events.pop_front() {
                self.happen(event);
            }
        }
        self.notice_broken_links();
        self.attach();
        while let Some(parcel) = self.links.arrived(self.now) {
            self.deliver(parcel);
        }
        for index in 0..self.hosts.len() {
            self.live_host(index);
        }
        self.live_parents();
        self.observe();
        self.now += self.script.step;
    }

    fn observe(&mut self) {
        let headrooms = self.controllers.iter().find_map(|controller| controller.fleet.as_ref());
        self.log.end_of_step(self.now, headrooms);
    }

    fn deliver(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::HostReport { host, stream, report } => self.host_report(host, stream, &report),
            Parcel::HostPlan { host, stream, plan } => self.host_plan(host, stream, plan),
            Parcel::SiteReport { site, controller, stream, report } => {
                self.site_report(site, controller, stream, &report);
            }
            Parcel::SitePlan { site, controller, stream, plan } => {
                self.site_plan(site, controller, stream, plan);
            }
        }
    }
}
