//! What the parents of a fleet remember at one moment, over all of them.

use headworks_core::node::Node;

use super::World;

/// Entries, summed over all parents that live.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// Children, and the buckets of each.
    pub(crate) children: usize,
    pub(crate) held: usize,
    pub(crate) buckets: usize,
    /// Children that left.
    pub(crate) departed: usize,
    /// Aggregators that died, at controllers; reports to be answered, at aggregators.
    pub(crate) orphans: usize,
    pub(crate) unanswered: usize,
}

impl World {
    pub(super) fn kept(&self) -> Kept {
        let mut kept = Kept::default();
        for zone in self.sites.iter().filter_map(|site| site.zone.as_ref()) {
            kept.add(zone);
            kept.unanswered += zone.unanswered();
        }
        for fleet in self.controllers.iter().filter_map(|controller| controller.fleet.as_ref()) {
            kept.add(fleet);
            kept.orphans += fleet.orphans();
        }
        kept
    }
}

impl Kept {
    fn add(&mut self, node: &impl Node) {
        let more = node.children().kept();
        self.children += more.children;
        self.held += more.held;
        self.buckets += more.buckets;
        self.departed += more.departed;
    }
}
