//! Streams: they come up, break, and are found broken.

use headworks_core::backoff::Backoff;
use headworks_core::node::Node;

use super::World;
use super::links::{KEEPALIVE, Uplink};
use super::parents::Downlink;

impl World {
    /// The stream of a host ends, at both ends.
    pub(super) fn part_host(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let site = &mut self.sites[host.site];
        if let Some((stream, child)) = host.uplink.attached {
            site.children.retain(|downlink| downlink.stream != stream);
            if let Some(zone) = &mut site.zone {
                zone.detach(child, site.rounds.time(self.now));
                site.rounds.dirty = true;
            }
        }
        self.lose_parent(index);
    }

    /// The host's end of a stream is closed; it will try the next one.
    pub(super) fn lose_parent(&mut self, index: usize) {
        let wait = self.hosts[index].backoff.next(self.chance.unit());
        let (now, aggregators) = (self.now, self.script.aggregators);
        let host = &mut self.hosts[index];
        host.wires[host.site % aggregators].forget_waiting();
        host.uplink = Uplink { attached: None, retry_at: now + wait };
        host.choice.failed();
        host.site = host.zone * aggregators + host.choice.place();
        if let Some(agent) = &mut host.agent {
            agent.detached();
        }
    }

    pub(super) fn part_site(&mut self, index: usize, controller: usize) {
        let site = &mut self.sites[index];
        let parent = &mut self.controllers[controller];
        let Some((stream, child)) = site.uplinks[controller].attached.take() else { return };
        site.uplinks[controller].retry_at = self.now + site.backoff.next(self.chance.unit());
        site.wires[controller].forget_waiting();
        if let Some(zone) = &mut site.zone {
            zone.parent_detached(controller);
        }
        parent.children.retain(|downlink| downlink.stream != stream);
        if let Some(fleet) = &mut parent.fleet {
            fleet.detach(child, parent.rounds.time(self.now));
            parent.rounds.dirty = true;
        }
    }

    /// Keepalives find links that have carried nothing for too long, and nodes that stand still.
    pub(super) fn notice_broken_links(&mut self) {
        for index in 0..self.hosts.len() {
            if self.hosts[index].uplink.attached.is_some() && self.host_is_out_of_reach(index) {
                self.part_host(index);
            }
        }
        for site in 0..self.sites.len() {
            for controller in 0..self.controllers.len() {
                if self.sites[site].uplinks[controller].attached.is_some()
                    && self.site_is_out_of_reach(site, controller)
                {
                    self.part_site(site, controller);
                }
            }
        }
    }

    fn host_is_out_of_reach(&self, index: usize) -> bool {
        let host = &self.hosts[index];
        let wire = host.wires[host.site % self.script.aggregators].dead_for(self.now);
        let pauses = [host.pause, self.sites[host.site].rounds.pause];
        pauses.iter().any(|pause| pause.lasted(self.now) >= KEEPALIVE) || wire >= KEEPALIVE
    }

    fn site_is_out_of_reach(&self, index: usize, controller: usize) -> bool {
        let site = &self.sites[index];
        let pauses = [site.rounds.pause, self.controllers[controller].rounds.pause];
        pauses.iter().any(|pause| pause.lasted(self.now) >= KEEPALIVE)
            || site.wires[controller].dead_for(self.now) >= KEEPALIVE
    }

    /// Those without a parent try to find one.
    pub(super) fn attach(&mut self) {
        if self.load.weights <= 0.0 {
            self.weigh();
        }
        for site in 0..self.sites.len() {
            for controller in 0..self.controllers.len() {
                let known = &self.sites[site];
                if known.zone.is_some()
                    && known.uplinks[controller].may_attach(self.now)
                    && !known.rounds.pause.is_on(self.now)
                {
                    self.attach_site(site, controller);
                }
            }
        }
        for index in 0..self.hosts.len() {
            let host = &self.hosts[index];
            if host.agent.is_none() || host.pause.is_on(self.now) {
                continue;
            }
            if host.choice.back_at.is_some_and(|back_at| back_at <= self.now) {
                self.go_back(index);
            }
            if self.hosts[index].uplink.may_attach(self.now) {
                self.attach_host(index);
            }
        }
    }

    fn attach_site(&mut self, index: usize, controller: usize) {
        let site = &mut self.sites[index];
        let parent = &mut self.controllers[controller];
        let answers = site.wires[controller].carries() && !parent.rounds.pause.is_on(self.now);
        let (Some(zone), Some(fleet), true) = (&mut site.zone, &mut parent.fleet, answers) else {
            site.uplinks[controller].retry_at = self.now + site.backoff.next(self.chance.unit());
            return;
        };
        let stream = self.links.new_stream();
        let child = fleet.attach(zone.hello(controller), parent.rounds.time(self.now)).child;
        if let Some(ledger) = &mut self.ledger {
            ledger.site_attached(index, site.life, (controller, parent.life), zone.children());
        }
        zone.parent_attached(controller);
        parent.children.push(Downlink { place: index, stream, child });
        parent.rounds.dirty = true;
        site.uplinks[controller].attached = Some((stream, child));
        site.backoff = Backoff::default();
    }

    /// To the aggregator that it prefers, if that answers by now.
    fn go_back(&mut self, index: usize) {
        let host = &self.hosts[index];
        let place = host.choice.preferred();
        let preferred = &self.sites[host.zone * self.script.aggregators + place];
        let answers = preferred.zone.is_some()
            && !preferred.rounds.pause.is_on(self.now)
            && host.wires[place].carries();
        let random = self.chance.unit();
        if !answers {
            self.hosts[index].choice.attached(self.now, || random);
            return;
        }
        if host.uplink.attached.is_some() {
            self.part_host(index);
        }
        let (now, aggregators) = (self.now, self.script.aggregators);
        let host = &mut self.hosts[index];
        host.choice.go_back();
        host.site = host.zone * aggregators + host.choice.place();
        host.uplink.retry_at = now;
        host.backoff = Backoff::default();
    }

    fn attach_host(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let site = &mut self.sites[host.site];
        self.log.attempted();
        let answers =
            host.wires[host.site % self.script.aggregators].carries() && !site.rounds.pause.is_on(self.now);
        let (Some(_), Some(zone), true) = (&host.agent, &mut site.zone, answers) else {
            self.lose_parent(index);
            return;
        };
        let stream = self.links.new_stream();
        if let Some(ledger) = &mut self.ledger {
            ledger.host_attached(index, host.life, site.life, host.counted());
        }
        let Some(agent) = &mut host.agent else { return };
        let child = zone.attach(agent.hello(), site.rounds.time(self.now)).child;
        agent.attached(format!("aggregator-{}", host.site));
        site.children.push(Downlink { place: index, stream, child });
        site.rounds.dirty = true;
        host.uplink.attached = Some((stream, child));
        host.choice.attached(self.now, || self.chance.unit());
        host.backoff = Backoff::default();
    }

    /// All streams of an aggregator that died break.
    pub(super) fn part_all_of_site(&mut self, index: usize) {
        for controller in 0..self.controllers.len() {
            self.part_site(index, controller);
        }
        for downlink in std::mem::take(&mut self.sites[index].children) {
            self.lose_parent(downlink.place);
        }
    }
}
