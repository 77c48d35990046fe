//! Load that moves between nodes, as behind a load balancer: each part of it is on one node at a time.

use std::time::{Duration, Instant};

use super::load::{Load, Loads};
use super::node::Node;
use super::tally::Tally;
use super::wait::sleep_until;

/// Longer than any test: a part of the load ends when it is told to.
const ENDLESS: Duration = Duration::from_secs(3600);

/// Parts of a load, all at the same rate.
pub(crate) struct Traffic {
    started: Instant,
    rps: f64,
    parts: Vec<Part>,
    over: Vec<Tally>,
}

/// On one node, since this second.
struct Part {
    since: usize,
    loads: Loads,
}

impl Traffic {
    /// One part on each of these.
    pub(crate) fn start<'a>(nodes: impl IntoIterator<Item = &'a Node>, rps: f64) -> Self {
        let mut traffic = Self { started: Instant::now(), rps, parts: Vec::new(), over: Vec::new() };
        traffic.parts = nodes.into_iter().map(|node| traffic.part_on(node)).collect();
        traffic
    }

    fn part_on(&self, node: &Node) -> Part {
        let loads = Loads::start(&[Load::new(&node.url("http"), self.rps)], ENDLESS);
        Part { since: self.second(), loads }
    }

    /// The second that has begun, or begins in a moment: parts are told to move about when a second does.
    pub(crate) fn second(&self) -> usize {
        format!("{:.0}", self.started.elapsed().as_secs_f64()).parse().unwrap()
    }

    /// Sleeps until a second is about to begin, so that what happens next can be told by the second.
    pub(crate) fn sleep_until_shortly_before_a_second(&self) {
        let next = self.started.elapsed().as_secs() + 2;
        sleep_until(self.started + Duration::from_secs(next) - Duration::from_millis(200));
    }

    pub(crate) fn sleep_until_second(&self, second: usize) {
        sleep_until(self.started + Duration::from_secs(second as u64));
    }

    /// This part goes to another node from now on.
    #[track_caller]
    pub(crate) fn moves(&mut self, part: usize, to: &Node) {
        let next = self.part_on(to);
        self.parts[part].loads.interrupt();
        let last = std::mem::replace(&mut self.parts[part], next);
        self.over.push(last.tally());
    }

    /// Ends it; all parts together, second by second.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Tally {
        self.parts.iter_mut().for_each(|part| part.loads.interrupt());
        self.over.extend(self.parts.into_iter().map(Part::tally));
        Tally::sum(&self.over)
    }
}

impl Part {
    #[track_caller]
    fn tally(self) -> Tally {
        self.loads.finish().remove(0).later(self.since)
    }
}
