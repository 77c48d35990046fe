//! What happens to nodes: they attach, die, come back, stand still, lose each other.

use std::time::Duration;

use headworks_core::node::Node;

use super::World;
use super::links::Uplink;
use super::parents::Downlink;
use crate::script::{Event, Who};

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
            Event::Pause(who, time) => self.pause(who, self.now + time),
            Event::Cut(who) => self.cut(who, Some(self.now)),
            Event::Heal(who) => self.cut(who, None),
            Event::Clock(hosts, seconds) => {
                let nanos = seconds.saturating_mul(1_000_000_000);
                self.hosts[hosts].iter_mut().for_each(|host| host.clock += nanos);
            }
            Event::Delay(least, most) => self.links.delay = (least, most),
            Event::Loss(part) => self.links.loss = part,
            Event::Repeat(part) => self.links.repeats = part,
            Event::Replace => self.replace_a_host(),
        }
        self.weigh();
    }

    /// Load goes to those who are there to take it.
    fn weigh(&mut self) {
        let takers = self.hosts.iter().filter(|host| host.agent.is_some() && !host.part.drained);
        self.load.weights = takers.map(|host| host.part.weight).sum();
    }

    fn kill(&mut self, who: Who) {
        match who {
            Who::Hosts(hosts) => hosts.for_each(|host| self.kill_host(host)),
            Who::Zone(zone) => {
                self.sites[zone].zone = None;
                for controller in 0..self.controllers.len() {
                    self.part_site(zone, controller);
                }
                for downlink in std::mem::take(&mut self.sites[zone].children) {
                    self.lose_parent(downlink.place);
                }
            }
            Who::Controller(controller) => {
                self.controllers[controller].fleet = None;
                for site in 0..self.sites.len() {
                    self.part_site(site, controller);
                }
            }
        }
    }

    fn kill_host(&mut self, index: usize) {
        self.hosts[index].agent = None;
        self.part_host(index);
    }

    fn start(&mut self, who: Who) {
        match who {
            Who::Hosts(hosts) => hosts.for_each(|host| self.start_host(host)),
            Who::Zone(zone) => self.sites[zone] = self.new_site(zone),
            Who::Controller(controller) => self.controllers[controller] = self.new_controller(controller),
        }
    }

    /// A new life, and a new name: whoever comes up is not who went down.
    fn start_host(&mut self, index: usize) {
        let zone = self.hosts[index].zone;
        let weight = self.hosts[index].part.weight;
        self.hosts[index] = self.new_host(index, zone);
        self.hosts[index].part.weight = weight;
    }

    fn replace_a_host(&mut self) {
        let index = self.next_replaced % self.hosts.len();
        self.next_replaced += 1;
        self.kill_host(index);
        self.start_host(index);
    }

    fn pause(&mut self, who: Who, until: Duration) {
        match who {
            Who::Hosts(hosts) => self.hosts[hosts].iter_mut().for_each(|host| host.paused_until = until),
            Who::Zone(zone) => self.sites[zone].rounds.paused_until = until,
            Who::Controller(controller) => self.controllers[controller].rounds.paused_until = until,
        }
    }

    /// Cuts what lies between a node and its parents; for a controller, its children.
    fn cut(&mut self, who: Who, since: Option<Duration>) {
        match who {
            Who::Hosts(hosts) => {
                self.hosts[hosts].iter_mut().for_each(|host| host.uplink.cut_since = since);
            }
            Who::Zone(zone) => {
                self.sites[zone].uplinks.iter_mut().for_each(|uplink| uplink.cut_since = since);
            }
            Who::Controller(controller) => {
                self.sites.iter_mut().for_each(|site| site.uplinks[controller].cut_since = since);
            }
        }
    }

    /// The stream of a host ends, at both ends.
    fn part_host(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let site = &mut self.sites[host.zone];
        if let Some((stream, child)) = host.uplink.attached {
            site.children.retain(|downlink| downlink.stream != stream);
            if let Some(zone) = &mut site.zone {
                zone.detach(child, site.rounds.time(self.now));
                site.rounds.dirty = true;
            }
        }
        self.lose_parent(index);
    }

    fn lose_parent(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.uplink.attached = None;
        host.uplink.retry_at = self.now + host.backoff.next(self.chance.unit());
        if let Some(agent) = &mut host.agent {
            agent.detached();
        }
    }

    fn part_site(&mut self, index: usize, controller: usize) {
        let site = &mut self.sites[index];
        let parent = &mut self.controllers[controller];
        let Some((stream, child)) = site.uplinks[controller].attached.take() else { return };
        site.uplinks[controller].retry_at = self.now + site.backoff.next(self.chance.unit());
        if let Some(zone) = &mut site.zone {
            zone.parent_detached(controller);
        }
        parent.children.retain(|downlink| downlink.stream != stream);
        if let Some(fleet) = &mut parent.fleet {
            fleet.detach(child, parent.rounds.time(self.now));
            parent.rounds.dirty = true;
        }
    }

    /// Keepalives find links that have carried nothing for too long.
    pub(super) fn notice_broken_links(&mut self) {
        for index in 0..self.hosts.len() {
            if self.hosts[index].uplink.is_found_broken(self.now) {
                self.part_host(index);
            }
        }
        for site in 0..self.sites.len() {
            for controller in 0..self.controllers.len() {
                if self.sites[site].uplinks[controller].is_found_broken(self.now) {
                    self.part_site(site, controller);
                }
            }
        }
    }

    /// Those without a parent try to find it.
    pub(super) fn attach(&mut self) {
        if self.load.weights <= 0.0 {
            self.weigh();
        }
        for site in 0..self.sites.len() {
            for controller in 0..self.controllers.len() {
                if self.sites[site].zone.is_some()
                    && self.sites[site].uplinks[controller].may_attach(self.now)
                {
                    self.attach_site(site, controller);
                }
            }
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].agent.is_some() && self.hosts[host].uplink.may_attach(self.now) {
                self.attach_host(host);
            }
        }
    }

    fn attach_site(&mut self, index: usize, controller: usize) {
        let site = &mut self.sites[index];
        let parent = &mut self.controllers[controller];
        let carries = site.uplinks[controller].carries();
        let (Some(zone), Some(fleet), true) = (&mut site.zone, &mut parent.fleet, carries) else {
            site.uplinks[controller].retry_at = self.now + site.backoff.next(self.chance.unit());
            return;
        };
        let stream = self.links.new_stream();
        let child = fleet.attach(zone.hello(controller), parent.rounds.time(self.now)).child;
        zone.parent_attached(controller);
        parent.children.push(Downlink { place: index, stream, child });
        parent.rounds.dirty = true;
        site.uplinks[controller] = Uplink { attached: Some((stream, child)), ..site.uplinks[controller] };
        site.backoff = headworks_core::backoff::Backoff::default();
    }

    fn attach_host(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let site = &mut self.sites[host.zone];
        self.log.attempted();
        let carries = host.uplink.carries();
        let (Some(agent), Some(zone), true) = (&mut host.agent, &mut site.zone, carries) else {
            host.uplink.retry_at = self.now + host.backoff.next(self.chance.unit());
            return;
        };
        let stream = self.links.new_stream();
        let child = zone.attach(agent.hello(), site.rounds.time(self.now)).child;
        agent.attached(format!("aggregator-{}", host.zone));
        site.children.push(Downlink { place: index, stream, child });
        site.rounds.dirty = true;
        host.uplink = Uplink { attached: Some((stream, child)), ..host.uplink };
        host.backoff = headworks_core::backoff::Backoff::default();
    }
}
