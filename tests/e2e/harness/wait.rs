//! Waiting for what is to come true, but not for ever.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a condition is looked at again.
const LOOK: Duration = Duration::from_millis(20);

/// Asks until there is an answer, for at most `limit`.
pub(crate) fn within<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        sleep(LOOK);
    }
}

/// Looks until there is nothing left to complain of; panics with the last complaint after `limit`.
#[track_caller]
pub(crate) fn eventually(what: &str, limit: Duration, mut complaint: impl FnMut() -> Option<String>) {
    let mut last = String::new();
    let done = within(limit, || match complaint() {
        None => Some(()),
        Some(text) => {
            last = text;
            None
        }
    });
    assert!(done.is_some(), "not within {limit:?}: {what}: {last}");
}

/// Sleeps until a moment, which may be past.
pub(crate) fn sleep_until(moment: Instant) {
    sleep(moment.saturating_duration_since(Instant::now()));
}
