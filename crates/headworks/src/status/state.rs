//! What a limit does at present, in a word.

use headworks_core::limits::Mode;
use headworks_core::message::Tier;
use serde::Serialize;

use super::{LimitView, NodeStatus};

/// Below this part of the offered a drop is told as none: it would be shown as 0.0 %.
const LEAST: f64 = 0.0005;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It drops.
    Dropping,
    /// It is in shadow, by itself or by the fleet's switch, and would drop.
    WouldDrop,
    /// It has traffic, and would let all of it pass.
    Within,
    /// It has no traffic.
    Idle,
    /// Agents and their store count it, and no controller.
    Exact,
    /// It is switched off.
    Off,
}

impl State {
    /// The state of a limit, as a node tells of it.
    pub(crate) fn of(view: &LimitView, node: &NodeStatus) -> Self {
        let enforced = view.mode == Mode::Enforce.name() && !node.shadow_all;
        match view.mode.as_str() {
            off if off == Mode::Off.name() => State::Off,
            _ if view.exact && node.tier != Tier::Agent.name() => State::Exact,
            _ if view.offered <= 0.0 => State::Idle,
            _ if !is_over(view) => State::Within,
            // What is enforced in some buckets and in shadow in others drops.
            _ if enforced || view.dropped > 0.0 => State::Dropping,
            _ => State::WouldDrop,
        }
    }

    /// Whether it drops, or would in shadow.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, State::Dropping | State::WouldDrop)
    }

    /// The word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Dropping => "dropping",
            State::WouldDrop => "would drop",
            State::Within => "within limit",
            State::Idle => "idle",
            State::Exact => "exact",
            State::Off => "off",
        }
    }
}

fn is_over(view: &LimitView) -> bool {
    view.ratio >= LEAST || view.dropped + view.would_drop >= LEAST * view.offered
}

#[cfg(test)]
mod tests {
    use super::super::fixture::limit;
    use super::*;

    fn state(mode: &str, view: LimitView, shadow_all: bool) -> State {
        let node = NodeStatus { shadow_all, ..NodeStatus::default() };
        State::of(&LimitView { mode: mode.to_owned(), ..view }, &node)
    }

    #[test]
    fn a_limit_is_told_of_in_a_word() {
        let over = || LimitView { ratio: 0.5, dropped: 5.0, ..limit("a", 10.0) };
        let in_shadow = || LimitView { dropped: 0.0, would_drop: 5.0, ..over() };
        assert_eq!(state("enforce", over(), false), State::Dropping);
        assert_eq!(state("enforce", in_shadow(), true), State::WouldDrop);
        assert_eq!(state("shadow", in_shadow(), false), State::WouldDrop);
        assert_eq!(state("enforce", limit("a", 10.0), false), State::Within);
        assert_eq!(state("enforce", limit("a", 0.0), false), State::Idle);
        assert_eq!(state("off", limit("a", 0.0), false), State::Off);
    }

    #[test]
    fn an_exact_limit_is_counted_by_agents_alone() {
        let on = |tier: Tier| NodeStatus { tier: tier.name().to_owned(), ..NodeStatus::default() };
        let exact = |offered| LimitView { exact: true, ..limit("a", offered) };
        assert_eq!(State::of(&exact(0.0), &on(Tier::Controller)), State::Exact);
        assert_eq!(State::of(&exact(0.0), &on(Tier::Aggregator)), State::Exact);
        assert_eq!(State::of(&exact(5.0), &on(Tier::Agent)), State::Within);
    }

    #[test]
    fn what_reads_as_nothing_is_nothing() {
        let hardly = LimitView { ratio: 0.0004, dropped: 0.004, ..limit("a", 10.0) };
        assert_eq!(state("enforce", hardly, false), State::Within);
    }
}
