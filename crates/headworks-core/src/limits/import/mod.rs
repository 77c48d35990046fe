//! Limits from the files of other limiters.
//!
//! What a file says is carried over with its meaning, or listed as not carried over; nothing is dropped in silence. What is no
//! sound file of the other limiter is refused with all its faults, as a limits file would be.

mod envoy;
mod limitador;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use super::advice::is_too_small;
use super::fault::{FaultLog, Place};
use super::rule::{COST, MAX_BUCKETS};
use super::text::{clean, decode};
use super::yaml::{Kind, Node, read};
use super::{
    Algorithm, Enforcement, Exact, Fault, Faults, Limit, LimitSet, Missing, Mode, OnSilence, Override, Scope,
    SurgeGuard,
};
use crate::pattern::Pattern;
use crate::units::Rate;

pub use envoy::envoy_ratelimit;
pub use limitador::limitador;

/// What limits came of a file, and what did not.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The limits.
    pub limits: LimitSet,
    /// What was not carried over, or not quite, by the place of its file among those given and in the order of lines.
    pub notes: Vec<(usize, Fault)>,
}

/// How imported limits are to be held.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    /// What kind of enforcement they get; `None` chooses for each: a drop ratio where that is right enough for so many agents, else
    /// an exact count, which is what the limiter they come from did.
    pub exact: Option<bool>,
    /// How many agents hold them.
    pub agents: u32,
}

/// The attribute that tells what others call domains or namespaces apart.
const DOMAIN: &str = "domain";

/// A file could not be read; which of those given, and its faults.
pub type Refused = (usize, Faults);

/// The document in a file, with what `take` makes of it.
fn document<T: Default>(bytes: &[u8], take: impl FnOnce(&Node<'_>, &mut FaultLog) -> T) -> Result<T, Faults> {
    let mut log = FaultLog::default();
    let text = decode(bytes, &mut log).and_then(|text| clean(text, &mut log));
    let tree = text.as_deref().and_then(|text| read(text, &mut log));
    let taken = match &tree {
        Some(Node { kind: Kind::Null, .. }) => {
            log.push(Place::START, String::new(), "the file is empty");
            T::default()
        }
        Some(tree) => take(tree, &mut log),
        None => T::default(),
    };
    log.vouch_for(taken)
}

impl Holding {
    /// Makes a limit of this rate, with the kind of enforcement that suits it.
    fn limit(self, name: String, rate: Rate, window: Algorithm) -> Limit {
        let mut limit = Limit {
            name: name.into(),
            matches: Vec::new(),
            exactly: false,
            per: Vec::new(),
            rate,
            cost: COST,
            mode: Mode::Enforce,
            order: 0,
            on_silence: OnSilence::default(),
            max_buckets: MAX_BUCKETS,
            missing: Missing::default(),
            burst: None,
            surge_guard: SurgeGuard::default(),
            max_rate_per_agent: None,
            scope: Scope::default(),
            enforcement: Enforcement::DropRatio,
            overrides: Vec::new(),
            rollout: None,
        };
        if rate.is_for_exact_only() || self.exact.unwrap_or_else(|| is_too_small(&limit, self.agents)) {
            limit.enforcement = Enforcement::Exact(Exact { algorithm: window, ..Exact::default() });
        }
        limit
    }
}

/// Gives each limit a name that no other has, as close to what it is called as names may be.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn unique(&mut self, wanted: &str) -> String {
        const LONGEST: usize = 120;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
        let clean: String = wanted.chars().map(|c| if fits(c) { c } else { '_' }).take(LONGEST).collect();
        let base = if clean.is_empty() { "limit".to_owned() } else { clean };
        let numbered = (2..).map(|n: u32| format!("{base}-{n}"));
        let mut candidates = [base.clone()].into_iter().chain(numbered);
        let name = candidates.find(|name| !self.0.contains(name)).unwrap_or(base);
        self.0.insert(name.clone());
        name
    }
}

/// An override that takes buckets out of a limit.
fn off(key: &str, pattern: &str) -> Override {
    let matches = vec![(key.to_owned(), Pattern::new(pattern))];
    Override { matches, rate: Rate::Unlimited, burst: None, mode: Some(Mode::Off) }
}
