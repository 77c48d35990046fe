//! What a limit does at present, in a word.

use headworks_core::limits::{Limit, Mode};
use serde::Serialize;

use crate::status::LimitView;

/// Below this part of the offered a drop is told as none: it would be shown as 0.0 %.
const LEAST: f64 = 0.0005;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
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
    pub(super) fn of(view: &LimitView, limit: Option<&Limit>, shadow_all: bool) -> Self {
        let enforced = view.mode == Mode::Enforce.name() && !shadow_all;
        let over = view.ratio >= LEAST || view.dropped + view.would_drop >= LEAST * view.offered;
        match limit {
            Some(limit) if limit.mode == Mode::Off => State::Off,
            Some(limit) if limit.exact().is_some() => State::Exact,
            _ if view.offered <= 0.0 => State::Idle,
            _ if !over => State::Within,
            // What is enforced in some buckets and in shadow in others drops.
            _ if enforced || view.dropped > 0.0 => State::Dropping,
            _ => State::WouldDrop,
        }
    }
}

#[cfg(test)]
mod tests {
    use headworks_core::limits::parse;

    use super::super::fixture::limit;
    use super::*;

    fn state(text: &str, view: LimitView, shadow_all: bool) -> State {
        let limits = parse(&format!("limits: [{{name: a, {text}}}]")).unwrap();
        let mode = limits.get("a").unwrap().mode.name().to_owned();
        State::of(&LimitView { mode, ..view }, limits.get("a").map(|limit| &**limit), shadow_all)
    }

    #[test]
    fn a_limit_is_told_of_in_a_word() {
        let over = || LimitView { ratio: 0.5, dropped: 5.0, ..limit("a", 10.0) };
        let in_shadow = || LimitView { dropped: 0.0, would_drop: 5.0, ..over() };
        assert_eq!(state("rate: 5/second", over(), false), State::Dropping);
        assert_eq!(state("rate: 5/second", in_shadow(), true), State::WouldDrop);
        assert_eq!(state("rate: 5/second, mode: shadow", in_shadow(), false), State::WouldDrop);
        assert_eq!(state("rate: 20/second", limit("a", 10.0), false), State::Within);
        assert_eq!(state("rate: 20/second", limit("a", 0.0), false), State::Idle);
        assert_eq!(state("rate: 20/second, mode: off", limit("a", 0.0), false), State::Off);
        assert_eq!(state("rate: 20/second, enforcement: exact", limit("a", 0.0), false), State::Exact);
    }

    #[test]
    fn what_reads_as_nothing_is_nothing() {
        let hardly = LimitView { ratio: 0.0004, dropped: 0.004, ..limit("a", 10.0) };
        assert_eq!(state("rate: 5/second", hardly, false), State::Within);
    }
}
