//! The switch that turns every limit of the fleet to shadow at once.
//!
//! A register that its last writer wins, by a logical version. Nodes merge what they hear by maximum, so it does not
//! matter in which order, how often or by which way a state reaches them: thrown on one controller, it goes down to its
//! aggregators, from them up to all other controllers, and with their hellos to those that start again.

use crate::children::ChildId;
use crate::message::Tier;
use crate::numbers::NumberMap;

/// How far a child may be ahead. Nobody throws a switch so often: without this bound one broken aggregator could say the
/// highest version there is, and nobody could throw the switch ever again.
const FARTHEST_AHEAD: u64 = 1 << 32;

/// No clock is later than this: one that is would use up versions which others do not believe.
const LATEST: u64 = FARTHEST_AHEAD - (1 << 20);

/// A state of the switch. The later version is the greater; of two of one version, thrown on two controllers at the same
/// time, the one that drops nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Switch {
    /// Rises each time that it is thrown, to the seconds since 1970 if that is more; 0 when it never was.
    pub version: u64,
    /// Every limit only counts what it would drop.
    pub shadow_all: bool,
}

impl Switch {
    /// The later of both.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        self.max(other)
    }

    /// Thrown once more, at this many seconds since 1970. A controller that has just started may not have heard yet how often
    /// the switch was thrown; with the time in the version its throw is the later one all the same.
    #[must_use]
    pub fn thrown(self, shadow_all: bool, at: u64) -> Self {
        let version = self.version.saturating_add(1).max(at.min(LATEST));
        Self { version, shadow_all }
    }

    /// Merged with what a child told: only one that has controllers of its own to hear it from, and nothing that is too
    /// far ahead to be true.
    #[must_use]
    fn merge_from_child(self, tier: Tier, told: Self) -> Self {
        let is_plausible = told.version.saturating_sub(self.version) <= FARTHEST_AHEAD;
        if tier == Tier::Aggregator && is_plausible { self.merge(told) } else { self }
    }
}

/// The switch at a node with children, and what each of them was told of it.
#[derive(Debug, Default)]
pub struct Posted {
    switch: Switch,
    told: NumberMap<ChildId, Switch>,
}

impl Posted {
    /// Its state here.
    pub fn switch(&self) -> Switch {
        self.switch
    }

    /// Somebody throws it here.
    pub fn throw(&mut self, shadow_all: bool, at: u64) {
        self.switch = self.switch.thrown(shadow_all, at);
    }

    /// A parent tells its state.
    pub fn hear_parent(&mut self, told: Switch) {
        self.switch = self.switch.merge(told);
    }

    /// A child of this tier tells its state.
    pub fn hear_child(&mut self, tier: Tier, told: Switch) {
        self.switch = self.switch.merge_from_child(tier, told);
    }

    /// Whether a child has not been told of the present state.
    pub fn is_news_for(&self, child: ChildId) -> bool {
        let thrown = self.switch != Switch::default();
        thrown && self.told.get(&child).copied().unwrap_or_default() != self.switch
    }

    /// The state to tell this child now.
    pub fn tell(&mut self, child: ChildId) -> Switch {
        if self.switch != Switch::default() {
            self.told.insert(child, self.switch);
        }
        self.switch
    }

    /// A child is gone.
    pub fn forget(&mut self, child: ChildId) {
        self.told.remove(&child);
    }
}

/// What a node and one parent of it have told each other of the switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchanged {
    heard: Switch,
    told: Switch,
}

impl Exchanged {
    /// A stream opens with a hello that tells the present state.
    pub fn greeted(&mut self, present: Switch) {
        *self = Self { heard: Switch::default(), told: present };
    }

    /// The parent tells its state.
    pub fn hear(&mut self, told: Switch) {
        self.heard = told;
    }

    /// The state that the parent lacks; told in every report until it says the same.
    pub fn lacks(&self, present: Switch) -> Option<Switch> {
        (self.heard < present).then_some(present)
    }

    /// Whether it lacks a state that it has not even been told, which is worth a report at once. Only once: a parent of
    /// an earlier release never says the same.
    pub fn is_news(&self, present: Switch) -> bool {
        self.heard < present && self.told != present
    }

    /// A report that says what the parent lacks.
    pub fn tell(&mut self, present: Switch) -> Option<Switch> {
        self.told = present;
        self.lacks(present)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ON: Switch = Switch { version: 1, shadow_all: true };

    fn any_switch() -> impl Strategy<Value = Switch> {
        // Few versions, so that they meet; and some from the far end.
        let version = prop_oneof![0..4_u64, Just(u64::MAX - 1), Just(u64::MAX)];
        (version, any::<bool>()).prop_map(|(version, shadow_all)| Switch { version, shadow_all })
    }

    proptest! {
        #[test]
        fn merging_knows_no_order_no_grouping_and_no_repetition(a in any_switch(), b in any_switch(), c in any_switch()) {
            prop_assert_eq!(a.merge(b), b.merge(a));
            prop_assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
            prop_assert_eq!(a.merge(a), a);
            prop_assert_eq!(a.merge(b).merge(b), a.merge(b));
            prop_assert_eq!(Switch::default().merge(a.max(Switch::default())), a);
        }

        #[test]
        fn whoever_throws_it_last_wins(before in any_switch(), on in any::<bool>()) {
            let thrown = before.thrown(on, 2);
            prop_assert_eq!(thrown.shadow_all, on);
            prop_assert!(before.version == u64::MAX || thrown.merge(before) == thrown);
        }
    }

    #[test]
    fn of_two_thrown_at_the_same_time_the_one_that_drops_nothing_holds() {
        let before = Switch { version: 7, shadow_all: true };
        assert!(before.thrown(false, 0).merge(before.thrown(true, 0)).shadow_all);
    }

    #[test]
    fn a_controller_that_has_heard_of_nothing_yet_throws_it_all_the_same() {
        let of_the_fleet = Switch::default().thrown(true, 1_700_000_000).thrown(false, 1_700_000_001);
        let of_a_newcomer = Switch::default().thrown(true, 1_700_000_500);
        assert!(of_the_fleet.merge(of_a_newcomer).shadow_all);
        assert!(!of_a_newcomer.thrown(false, 0).shadow_all, "nor does a clock that is behind lose a throw");
        assert!(Switch::default().thrown(true, u64::MAX).version < FARTHEST_AHEAD);
    }

    #[test]
    fn only_aggregators_are_heard_from_below() {
        for (tier, heard) in [(Tier::Agent, false), (Tier::Aggregator, true), (Tier::Controller, false)] {
            let mut posted = Posted::default();
            posted.hear_child(tier, ON);
            assert_eq!(posted.switch().shadow_all, heard, "{tier:?}");
        }
    }

    #[test]
    fn a_child_that_is_too_far_ahead_is_not_believed() {
        let mut posted = Posted::default();
        posted.throw(true, 0);
        for version in [u64::MAX, FARTHEST_AHEAD + 2] {
            posted.hear_child(Tier::Aggregator, Switch { version, shadow_all: false });
            assert_eq!(posted.switch(), ON);
        }
        posted.hear_child(Tier::Aggregator, Switch { version: FARTHEST_AHEAD + 1, shadow_all: false });
        assert!(!posted.switch().shadow_all);
    }

    #[test]
    fn each_child_is_told_once() {
        let (mut posted, child) = (Posted::default(), ChildId(1));
        assert!(!posted.is_news_for(child), "never thrown");
        posted.throw(true, 0);
        assert!(posted.is_news_for(child));
        assert_eq!(posted.tell(child), ON);
        assert!(!posted.is_news_for(child));
        posted.forget(child);
        assert!(posted.is_news_for(child));
    }

    #[test]
    fn a_parent_is_told_until_it_says_the_same_and_hurried_once() {
        let mut exchanged = Exchanged::default();
        exchanged.greeted(Switch::default());
        assert!(!exchanged.is_news(Switch::default()) && exchanged.tell(Switch::default()).is_none());
        assert!(exchanged.is_news(ON));
        assert_eq!(exchanged.tell(ON), Some(ON));
        assert!(!exchanged.is_news(ON));
        assert_eq!(exchanged.tell(ON), Some(ON), "it has not said the same yet");
        exchanged.hear(ON);
        assert_eq!(exchanged.tell(ON), None);
    }
}
