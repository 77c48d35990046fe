//! Sliding windows: a log of what was charged when, of bounded length.
//!
//! The usual two counters with a weight between them let pass up to twice the amount within one window, since they take
//! what was charged for spread evenly; a log of every request has no bound. Here charges that come within a 64th of the
//! window of each other share an entry, which counts as charged at its last one. So never more than the amount passes
//! in any stretch as long as the window, the log has at most 66 entries, and room comes back at most a 64th of the
//! window later than it might. Limits of up to 64 evenly spread requests in a window are exact to the nanosecond.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Look, State, fixed::Window};
use crate::units::Moment;

/// Into how many parts a window is divided.
const PARTS: u32 = 64;
/// Most entries of a log: they begin at least a part of the window apart, and live for a window and a part.
pub const MOST_ENTRIES: usize = PARTS as usize + 2;

/// When cost units were charged, the earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    entries: VecDeque<Entry>,
}

/// Charges that came close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    first: Moment,
    last: Moment,
    used: u64,
}

impl Log {
    /// How many entries it has.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// The latest moment that it knows: a clock that went back stands still.
    fn at_least(&self, now: Moment) -> Moment {
        self.entries.back().map_or(now, |entry| now.max(entry.last))
    }

    fn forget(&mut self, window: Window, now: Moment) {
        while self.entries.front().is_some_and(|entry| is_past(entry, window, now)) {
            self.entries.pop_front();
        }
    }

    fn add(&mut self, window: Window, cost: u64, now: Moment) {
        match self.entries.back_mut() {
            Some(entry) if now.since(entry.first) < window.length() / PARTS => {
                entry.last = now;
                entry.used = entry.used.saturating_add(cost);
            }
            _ => self.entries.push_back(Entry { first: now, last: now, used: cost }),
        }
    }
}

fn is_past(entry: &Entry, window: Window, now: Moment) -> bool {
    now.since(entry.last) >= window.length()
}

pub(super) fn look(window: Window, state: &State, cost: u64, now: Moment) -> Look {
    let remaining = window.amount().saturating_sub(used(window, state, now));
    if cost <= remaining {
        return Look::passes(remaining);
    }
    let wait = (cost <= window.amount()).then(|| wait(window, state, cost, now));
    Look::refused(remaining, wait)
}

/// The time until so many of the earliest entries are past that the cost fits.
fn wait(window: Window, state: &State, cost: u64, now: Moment) -> Duration {
    let State::Log(log) = state else { return Duration::ZERO };
    let mut used: u64 = used(window, state, now);
    let live = log.entries.iter().filter(|entry| !is_past(entry, window, log.at_least(now)));
    for entry in live {
        used = used.saturating_sub(entry.used);
        if used.saturating_add(cost) <= window.amount() {
            return (entry.last + window.length()).since(now);
        }
    }
    window.length()
}

pub(super) fn charge(window: Window, state: &mut State, cost: u64, now: Moment) {
    if !matches!(state, State::Log(_)) {
        *state = State::Log(Box::default());
    }
    if let State::Log(log) = state {
        let now = log.at_least(now);
        log.forget(window, now);
        log.add(window, cost, now);
    }
}

/// The latest charges are given back first: room that came back by itself stays.
pub(super) fn give_back(window: Window, state: &mut State, cost: u64, now: Moment) -> u64 {
    let State::Log(log) = state else { return 0 };
    let now = log.at_least(now);
    let mut left = cost;
    for entry in log.entries.iter_mut().rev().filter(|entry| !is_past(entry, window, now)) {
        let back = left.min(entry.used);
        (entry.used, left) = (entry.used - back, left - back);
    }
    cost - left
}

pub(super) fn used(window: Window, state: &State, now: Moment) -> u64 {
    let State::Log(log) = state else { return 0 };
    let now = log.at_least(now);
    let live = log.entries.iter().filter(|entry| !is_past(entry, window, now));
    live.fold(0, |sum, entry| sum.saturating_add(entry.used))
}
