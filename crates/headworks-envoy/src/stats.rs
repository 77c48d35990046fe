//! What Envoy's statistics are told: differences of what the limiter has counted. Pure.
//!
//! The request path touches none of them: a labelled statistic is looked up by its name and labels in Envoy, which takes longer than the
//! decision.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use headworks_agent::{LimiterStats, PlanState};
use headworks_core::bucket::Counts;

/// So many limits have statistics of their own, those that had traffic first: Envoy never forgets one, and each takes memory
/// in it and in whatever scrapes it.
const MOST_LIMITS: usize = 500;
/// What all others are counted as. No limit can be called so.
const OTHERS: &str = "(others)";

/// What a limit did since it was last told, in cost units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// What it let pass.
    pub admitted: u64,
    /// What it dropped.
    pub dropped: u64,
    /// What it would have dropped, were it enforced.
    pub would_drop: u64,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.dropped += other.dropped;
        self.would_drop += other.would_drop;
    }
}

/// How the agent stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Limits in force that are not off.
    pub limits: u64,
    /// Milliseconds since the controller computed the plan in hand; nothing before the first.
    pub plan_age_ms: Option<u64>,
    /// Nothing is dropped but bans: no plan ever came, or none for longer than the hold.
    pub fails_open: bool,
    /// The fleet's switch is on.
    pub is_in_shadow: bool,
}

/// What was told, and what is still to be told.
#[derive(Debug, Default)]
pub struct Ledger {
    counted: HashMap<String, Counts>,
    named: BTreeSet<String>,
    untold: BTreeMap<String, Done>,
    standing: Standing,
}

impl Ledger {
    /// Takes down what a limiter has counted by now; how its agent stands.
    pub fn take_down(&mut self, stats: &LimiterStats) -> Standing {
        let mut counted = HashMap::with_capacity(stats.limits.len());
        for limit in &stats.limits {
            let (name, counts) = (&limit.limit.name, limit.counts);
            let done = difference(self.counted.get(&**name).copied().unwrap_or_default(), counts);
            if done != Done::default() {
                let label = self.label(name);
                self.untold.entry(label).or_default().add(done);
            }
            // Limits that are gone are forgotten: one of the same name that comes later counts anew.
            counted.insert(name.to_string(), counts);
        }
        self.counted = counted;
        self.standing = standing(stats);
        self.standing
    }

    /// What is to be told, by label, and is told with that; and how the agent stands.
    pub fn tell(&mut self) -> (BTreeMap<String, Done>, Standing) {
        (std::mem::take(&mut self.untold), self.standing)
    }

    fn label(&mut self, name: &str) -> String {
        if self.named.contains(name) || self.named.len() < MOST_LIMITS {
            self.named.insert(name.to_owned());
            return name.to_owned();
        }
        OTHERS.to_owned()
    }
}

/// What came between two counts; all of the later one if it began anew.
fn difference(before: Counts, now: Counts) -> Done {
    let before = if now.offered < before.offered { Counts::default() } else { before };
    let since = |now: u64, before: u64| now.saturating_sub(before);
    let (offered, dropped) = (since(now.offered, before.offered), since(now.dropped, before.dropped));
    Done { admitted: since(offered, dropped), dropped, would_drop: since(now.would_drop, before.would_drop) }
}

fn standing(stats: &LimiterStats) -> Standing {
    let age = stats.link.age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    Standing {
        limits: stats.limits.len() as u64,
        plan_age_ms: age,
        fails_open: matches!(stats.link.state, PlanState::None | PlanState::Open),
        is_in_shadow: stats.shadow_all,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headworks_agent::{LimitStats, LinkStats};
    use headworks_core::limits::parse;

    use super::*;

    /// Limits of these names that have counted this.
    fn counted<'n>(limits: impl Iterator<Item = (&'n str, [u64; 3])>) -> LimiterStats {
        let limits = limits.map(|(name, [offered, dropped, would_drop])| {
            let limits = parse(&format!("limits: [{{name: '{name}', rate: 1/second}}]")).unwrap();
            LimitStats {
                limit: Arc::new(limits.limits()[0].as_ref().clone()),
                counts: Counts { offered, dropped, would_drop, ..Counts::default() },
                drop_ratio: Default::default(),
                buckets: 1,
                untracked: 0,
            }
        });
        LimiterStats { limits: limits.collect(), shadow_all: false, link: LinkStats::default() }
    }

    fn told(ledger: &mut Ledger, name: &'static str, counts: [u64; 3]) -> Vec<(String, Done)> {
        ledger.take_down(&counted([(name, counts)].into_iter()));
        ledger.tell().0.into_iter().collect()
    }

    fn done(admitted: u64, dropped: u64, would_drop: u64) -> Done {
        Done { admitted, dropped, would_drop }
    }

    #[test]
    fn tells_each_unit_once() {
        let mut ledger = Ledger::default();
        assert_eq!(told(&mut ledger, "a", [10, 4, 0]), [("a".to_owned(), done(6, 4, 0))]);
        assert_eq!(told(&mut ledger, "a", [10, 4, 0]), []);
        assert_eq!(told(&mut ledger, "a", [15, 4, 2]), [("a".to_owned(), done(5, 0, 2))]);
    }

    #[test]
    fn what_nobody_took_is_told_with_what_came_later() {
        let mut ledger = Ledger::default();
        ledger.take_down(&counted([("a", [10, 4, 0])].into_iter()));
        assert_eq!(told(&mut ledger, "a", [20, 8, 0]), [("a".to_owned(), done(12, 8, 0))]);
    }

    #[test]
    fn a_limit_that_begins_anew_is_told_from_its_beginning() {
        let mut ledger = Ledger::default();
        told(&mut ledger, "a", [10, 4, 0]);
        assert_eq!(told(&mut ledger, "a", [3, 1, 0]), [("a".to_owned(), done(2, 1, 0))]);
        assert_eq!(told(&mut ledger, "b", [1, 0, 0]), [("b".to_owned(), done(1, 0, 0))]);
        assert_eq!(told(&mut ledger, "a", [5, 1, 0]), [("a".to_owned(), done(4, 1, 0))]);
    }

    #[test]
    fn limits_beyond_the_most_are_told_as_one() {
        let mut ledger = Ledger::default();
        let names: Vec<String> = (0..MOST_LIMITS + 20).map(|n| format!("limit-{n:04}")).collect();
        ledger.take_down(&counted(names.iter().map(|name| (name.as_str(), [1, 0, 0]))));
        let told = ledger.tell().0;
        assert_eq!(told.len(), MOST_LIMITS + 1);
        assert_eq!(told[OTHERS], done(20, 0, 0));
    }

    #[test]
    fn an_agent_without_a_plan_fails_open() {
        let mut stats = counted([("a", [0, 0, 0])].into_iter());
        assert!(standing(&stats).fails_open);
        stats.link.state = PlanState::Fresh;
        let fresh = standing(&stats);
        assert_eq!((fresh.fails_open, fresh.limits, fresh.plan_age_ms), (false, 1, None));
    }
}
