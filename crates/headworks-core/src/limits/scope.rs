//! How far a limit reaches.

use super::Limit;

/// Where requests are that count together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The limit holds for each zone by itself.
    Zone,
    /// The limit holds for each region by itself.
    Region,
    /// The limit holds for the whole fleet.
    #[default]
    Global,
}

impl Scope {
    /// The instance of a place. A list, never a joined string; a zone comes with its region, since two regions may have
    /// zones of one name.
    pub fn instance(self, region: &str, zone: &str) -> Vec<String> {
        match self {
            Scope::Zone => vec![region.to_owned(), zone.to_owned()],
            Scope::Region => vec![region.to_owned()],
            Scope::Global => Vec::new(),
        }
    }

    /// As the limits file writes it.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Zone => "zone",
            Scope::Region => "region",
            Scope::Global => "global",
        }
    }
}

impl Limit {
    /// Whether buckets of this limit are told apart as those of another.
    pub fn counts_like(&self, other: &Limit) -> bool {
        self.per == other.per && self.scope == other.scope
    }
}
