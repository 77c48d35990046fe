//! A fleet in which time is a number: the program's own state machines, and around them all that a scenario does.

mod attach;
mod choice;
mod fault;
mod host;
mod invariant;
mod kept;
mod ledger;
mod links;
mod load;
mod parents;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::Identity;
use headworks_core::message::Incarnation;

use crate::chance::Chance;
use crate::log::Log;
use crate::script::{Event, Kind, Script};
use host::Host;
pub(crate) use kept::Kept;
use ledger::Ledger;
use links::{Links, Parcel, Pause};
use load::Load;
use parents::{Controller, Site};

/// Time between two rounds of an agent.
const BEAT: Duration = Duration::from_millis(50);
/// Time between two rounds of a parent.
const FLUSH: Duration = Duration::from_millis(20);
/// Time between two ticks of a parent.
const TICK: Duration = Duration::from_secs(1);

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Host(usize),
    Site(usize),
    Controller(usize),
}

/// A fleet at one point of its life.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) log: Log,
    script: Arc<Script>,
    events: VecDeque<(Duration, Event)>,
    load: Load,
    hosts: Vec<Host>,
    /// All aggregators, zone after zone.
    sites: Vec<Site>,
    controllers: Vec<Controller>,
    links: Links,
    /// What arrived at nodes that stand still.
    inboxes: BTreeMap<Place, Vec<Parcel>>,
    ledger: Option<Ledger>,
    keeps: bool,
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
            inboxes: BTreeMap::new(),
            ledger: script.measures(Kind::Counts).then(|| Ledger::new(script)),
            keeps: script.measures(Kind::Kept),
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
            for _ in 0..script.aggregators {
                let site = world.new_site(world.sites.len(), index);
                world.sites.push(site);
            }
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
        self.close_ledger();
    }

    fn step(&mut self) {
        while self.events.front().is_some_and(|(time, _)| *time <= self.now) {
            if let Some((_, event)) = self.events.pop_front() {
                self.happen(event);
            }
        }
        self.notice_broken_links();
        self.attach();
        self.read_what_waited();
        while let Some(parcel) = self.links.arrived(self.now) {
            self.arrive(parcel);
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
        if self.keeps && self.now.subsec_nanos() == 0 {
            let kept = self.kept();
            self.log.kept.push((self.now, kept));
        }
    }

    /// A node that stands still reads what came in the meantime when it goes on, and in the order in which it came.
    fn arrive(&mut self, parcel: Parcel) {
        let reader = self.reader(&parcel);
        if self.pause_of(reader).is_on(self.now) {
            self.inboxes.entry(reader).or_default().push(parcel);
        } else {
            self.deliver(parcel);
        }
    }

    fn read_what_waited(&mut self) {
        let awake = |place: &&Place| !self.pause_of(**place).is_on(self.now);
        let awake: Vec<Place> = self.inboxes.keys().filter(awake).copied().collect();
        for parcel in
            awake.iter().filter_map(|place| self.inboxes.remove(place)).flatten().collect::<Vec<_>>()
        {
            self.deliver(parcel);
        }
    }

    fn reader(&self, parcel: &Parcel) -> Place {
        match parcel {
            Parcel::HostReport { host, .. } => Place::Site(self.hosts[*host].site),
            Parcel::HostPlan { host, .. } => Place::Host(*host),
            Parcel::SiteReport { controller, .. } => Place::Controller(*controller),
            Parcel::SitePlan { site, .. } => Place::Site(*site),
        }
    }

    fn pause_of(&self, place: Place) -> Pause {
        match place {
            Place::Host(host) => self.hosts[host].pause,
            Place::Site(site) => self.sites[site].rounds.pause,
            Place::Controller(controller) => self.controllers[controller].rounds.pause,
        }
    }

    /// Sends over whatever lies between the two.
    fn send(&mut self, parcel: Parcel) {
        let wire = match &parcel {
            Parcel::HostReport { host, .. } | Parcel::HostPlan { host, .. } => {
                let host = &mut self.hosts[*host];
                &mut host.wires[host.site % self.script.aggregators]
            }
            Parcel::SiteReport { site, controller, .. } | Parcel::SitePlan { site, controller, .. } => {
                &mut self.sites[*site].wires[*controller]
            }
        };
        self.links.send(self.now, wire, parcel);
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
