//! Who is attached, by name and by tier: found without asking all the others.

use std::collections::HashMap;

use super::ChildId;
use crate::message::{Hello, Tier};

/// The names of all children.
#[derive(Debug, Default)]
pub(super) struct Roll {
    by_node: HashMap<String, Vec<ChildId>>,
    by_tier: HashMap<Tier, usize>,
    /// Children that have their name in common with another one.
    twins: usize,
}

impl Roll {
    pub(super) fn add(&mut self, id: ChildId, hello: &Hello) {
        let alike = self.by_node.entry(hello.node.clone()).or_default();
        self.twins += match alike.len() {
            0 => 0,
            1 => 2,
            _ => 1,
        };
        alike.push(id);
        *self.by_tier.entry(hello.tier).or_default() += 1;
    }

    pub(super) fn remove(&mut self, id: ChildId, hello: &Hello) {
        let Some(alike) = self.by_node.get_mut(&hello.node) else { return };
        alike.retain(|other| *other != id);
        match alike.len() {
            0 => drop(self.by_node.remove(&hello.node)),
            1 => self.twins -= 2,
            _ => self.twins -= 1,
        }
        if let Some(children) = self.by_tier.get_mut(&hello.tier) {
            *children -= 1;
        }
    }

    /// Those of this name.
    pub(super) fn named(&self, node: &str) -> &[ChildId] {
        self.by_node.get(node).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_tier(&self, tier: Tier) -> usize {
        self.by_tier.get(&tier).copied().unwrap_or_default()
    }

    pub(super) fn twins(&self) -> usize {
        self.twins
    }
}
