//! What a limit does at present, in a word.

use headworks_core::limits::Mode;
use serde::Serialize;

use super::LimitView;

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
    /// The state of a limit; `exact` if a controller tells of one that it does not count.
    pub(crate) fn of(view: &LimitView, exact: bool, shadow_all: bool) -> Self {
        let enforced = view.mode == Mode::Enforce.name() && !shadow_all;
        let over = view.ratio >= LEAST || view.dropped + view.would_drop >= LEAST * view.offered;
        match view.mode.as_str() {
            off if off == Mode::Off.name() => State::Off,
            _ if exact => State::Exact,
            _ if view.offered <= 0.0 => State::Idle,
            _ if !over => State::Within,
            // What is enforced in some buckets and in shadow in others drops.
            _ if enforced || view.dropped > 0.0 => State::Dropping,
            _ => State::WouldDrop,
        }
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

#[cfg(test)]
mod tests {
    use super::super::fixture::limit;
    use super::*;

    fn state(mode: &str, view: LimitView, shadow_all: bool) -> State {
        State::of(&LimitView { mode: mode.to_owned(), ..view }, false, shadow_all)
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
        assert_eq!(State::of(&limit("a", 0.0), true, false), State::Exact);
    }

    #[test]
    fn what_reads_as_nothing_is_nothing() {
        let hardly = LimitView { ratio: 0.0004, dropped: 0.004, ..limit("a", 10.0) };
        assert_eq!(state("enforce", hardly, false), State::Within);
    }
}
