//! What happens to nodes: they die, come back, stand still, lose each other.

use std::ops::Range;
use std::time::Duration;

use super::World;
use super::links::Wire;
use crate::script::{Event, Link, Who};

impl World {
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Offer { stream, rate } => self.load.rates[stream] = rate,
            Event::Kill(who) => self.kill(who),
            Event::Start(who) => self.start(who),
            Event::Drain(hosts) => self.hosts[hosts].iter_mut().for_each(|host| host.part.drained = true),
            Event::Restore(hosts) => self.hosts[hosts].iter_mut().for_each(|host| host.part.drained = false),
            Event::Weight(hosts, weight) => {
                self.hosts[hosts].iter_mut().for_each(|host| host.part.weight = weight);
            }
            Event::Pause(who, time) => self.pause(&who, time),
            Event::Cut(link, way) => {
                let now = self.now;
                self.each_wire(&link, |wire| wire.cut(way, now));
            }
            Event::Slow(link, by) => self.each_wire(&link, |wire| wire.slow(by)),
            Event::Heal(link) => self.heal(&link),
            Event::Clock(who, seconds) => self.jump(&who, seconds),
            Event::Delay(least, most) => self.links.delay = (least, most),
            Event::Loss(part) => self.links.loss = part,
            Event::Repeat(part) => self.links.repeats = part,
            Event::Replace => self.replace_a_host(),
        }
        self.weigh();
    }

    /// Load goes to those who are there to take it.
    pub(super) fn weigh(&mut self) {
        let takers = self.hosts.iter().filter(|host| host.agent.is_some() && !host.part.drained);
        self.load.weights = takers.map(|host| host.part.weight).sum();
    }

    /// The aggregators that are meant.
    fn sites_of(&self, who: &Who) -> Range<usize> {
        let all = self.script.aggregators;
        match who {
            Who::Zone(zone) => zone * all..(zone + 1) * all,
            Who::Aggregator { zone, place } => zone * all + place..zone * all + place + 1,
            Who::Hosts(_) | Who::Controller(_) => 0..0,
        }
    }

    fn kill(&mut self, who: Who) {
        match who {
            Who::Hosts(hosts) => hosts.for_each(|host| self.kill_host(host)),
            Who::Zone(_) | Who::Aggregator { .. } => {
                self.sites_of(&who).for_each(|site| self.kill_site(site));
            }
            Who::Controller(controller) => {
                self.close_controller(controller);
                self.controllers[controller].fleet = None;
                for site in 0..self.sites.len() {
                    self.part_site(site, controller);
                }
            }
        }
    }

    fn kill_site(&mut self, site: usize) {
        self.close_site(site);
        self.sites[site].zone = None;
        self.part_all_of_site(site);
    }

    fn kill_host(&mut self, index: usize) {
        self.hosts[index].agent = None;
        self.part_host(index);
    }

    fn start(&mut self, who: Who) {
        match who {
            Who::Hosts(hosts) => hosts.for_each(|host| self.start_host(host)),
            Who::Zone(_) | Who::Aggregator { .. } => {
                self.sites_of(&who).for_each(|site| self.start_site(site));
            }
            Who::Controller(controller) => {
                // One that lives is not started twice: it would leave streams without an end.
                if self.controllers[controller].fleet.is_none() {
                    self.controllers[controller] = self.new_controller(controller);
                }
            }
        }
    }

    /// What lies between it and its parents stays as it is.
    fn start_site(&mut self, index: usize) {
        if self.sites[index].zone.is_none() {
            let wires = std::mem::take(&mut self.sites[index].wires);
            self.sites[index] = self.new_site(index, self.sites[index].of);
            self.sites[index].wires = wires;
        }
    }

    /// A new life, and a new name: whoever comes up is not who went down.
    fn start_host(&mut self, index: usize) {
        if self.hosts[index].agent.is_some() {
            self.kill_host(index);
        }
        let zone = self.hosts[index].zone;
        let weight = self.hosts[index].part.weight;
        let wires = std::mem::take(&mut self.hosts[index].wires);
        self.hosts[index] = self.new_host(index, zone);
        self.hosts[index].part.weight = weight;
        self.hosts[index].wires = wires;
    }

    fn replace_a_host(&mut self) {
        let index = self.next_replaced % self.hosts.len();
        self.next_replaced += 1;
        self.kill_host(index);
        self.start_host(index);
    }

    fn pause(&mut self, who: &Who, time: Duration) {
        let now = self.now;
        match who {
            Who::Hosts(hosts) => {
                self.hosts[hosts.clone()].iter_mut().for_each(|host| host.pause.extend(now, time));
            }
            Who::Controller(controller) => self.controllers[*controller].rounds.pause.extend(now, time),
            Who::Zone(_) | Who::Aggregator { .. } => {
                let sites = self.sites_of(who);
                self.sites[sites].iter_mut().for_each(|site| site.rounds.pause.extend(now, time));
            }
        }
    }

    fn jump(&mut self, who: &Who, seconds: i64) {
        match who {
            Who::Hosts(hosts) => {
                let nanos = seconds.saturating_mul(1_000_000_000);
                self.hosts[hosts.clone()].iter_mut().for_each(|host| host.clock += nanos);
            }
            Who::Controller(controller) => self.controllers[*controller].rounds.jump(seconds),
            Who::Zone(_) | Who::Aggregator { .. } => {
                let sites = self.sites_of(who);
                self.sites[sites].iter_mut().for_each(|site| site.rounds.jump(seconds));
            }
        }
    }

    fn heal(&mut self, link: &Link) {
        let mut waiting = Vec::new();
        self.each_wire(link, |wire| waiting.append(&mut wire.heal()));
        waiting.into_iter().for_each(|parcel| self.send(parcel));
    }

    /// All that lies between a node and its parents, or one of them; for a controller, its children.
    fn each_wire(&mut self, link: &Link, mut change: impl FnMut(&mut Wire)) {
        let parents = link.from.as_ref();
        let (all, sites) = (self.script.aggregators, parents.map(|parent| self.sites_of(parent)));
        match &link.of {
            Who::Hosts(hosts) => {
                for host in &mut self.hosts[hosts.clone()] {
                    let meant = |place: &usize| {
                        sites.as_ref().is_none_or(|sites| sites.contains(&(host.zone * all + place)))
                    };
                    (0..all).filter(meant).for_each(|place| change(&mut host.wires[place]));
                }
            }
            Who::Zone(_) | Who::Aggregator { .. } => {
                let sites = self.sites_of(&link.of);
                let meant =
                    |controller: &usize| parents.is_none_or(|parent| *parent == Who::Controller(*controller));
                for site in &mut self.sites[sites] {
                    let wires = site.wires.iter_mut().enumerate();
                    wires.filter(|(controller, _)| meant(controller)).for_each(|(_, wire)| change(wire));
                }
            }
            Who::Controller(controller) => {
                self.sites.iter_mut().for_each(|site| change(&mut site.wires[*controller]));
            }
        }
    }
}
