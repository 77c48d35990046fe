//! Fixed windows: whole units of time since 1970 UTC. A day's window begins at midnight UTC, and a month is 30 days.
//! Aligned windows need no memory of when a caller came first, and every process has the same ones. Around an edge
//! twice the amount may pass; who minds takes a sliding window.

use std::time::Duration;

use super::{Look, State};
use crate::units::{Moment, Unit};

/// An amount in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    amount: u64,
    length: Duration,
}

impl Window {
    pub(super) fn new(amount: u64, unit: Unit) -> Self {
        Self { amount, length: unit.duration() }
    }

    pub(super) fn amount(self) -> u64 {
        self.amount
    }

    pub(super) fn length(self) -> Duration {
        self.length
    }

    pub(super) fn micros(self) -> u64 {
        u64::try_from(self.length.as_micros()).unwrap_or(u64::MAX)
    }

    /// The window that this moment is in; of a clock that went back, the one that was counted last.
    #[inline]
    fn current(self, state: &State, now: Moment) -> (Moment, u64) {
        let start = now.rounded_down(self.length);
        match state {
            State::Window { start: counted, used } if start <= *counted => (*counted, *used),
            _ => (start, 0),
        }
    }

    #[inline]
    pub(super) fn look(self, state: &State, cost: u64, now: Moment) -> Look {
        let (start, used) = self.current(state, now);
        let remaining = self.amount.saturating_sub(used);
        if cost <= remaining {
            return Look::passes(remaining);
        }
        let wait = (cost <= self.amount).then(|| (start + self.length).since(now));
        Look::refused(remaining, wait)
    }

    #[inline]
    pub(super) fn charge(self, state: &mut State, cost: u64, now: Moment) {
        let (start, used) = self.current(state, now);
        *state = State::Window { start, used: used.saturating_add(cost) };
    }

    pub(super) fn give_back(self, state: &mut State, cost: u64, now: Moment) -> u64 {
        let (start, used) = self.current(state, now);
        let back = cost.min(used);
        if back > 0 {
            *state = State::Window { start, used: used - back };
        }
        back
    }

    pub(super) fn used(self, state: &State, now: Moment) -> u64 {
        self.current(state, now).1
    }
}
