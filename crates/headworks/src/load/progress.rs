//! Progress: one line a second, for somebody who watches.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::{Instant, Interval, interval_at};

use super::tally::{Second, Tally};

/// Tells the seconds gone by, on stderr if that is a terminal.
pub(super) struct Progress {
    ticks: Interval,
    told: usize,
    is_watched: bool,
}

impl Progress {
    pub(super) fn new(start: Instant) -> Self {
        let second = Duration::from_secs(1);
        Self { ticks: interval_at(start + second, second), told: 0, is_watched: io::stderr().is_terminal() }
    }

    /// Waits for the next second to end; safe to drop and call again.
    pub(super) async fn tick(&mut self) {
        self.ticks.tick().await;
    }

    /// Tells the seconds that have ended since last time; answers that are still to come are not in it.
    pub(super) fn tell(&mut self, tally: &Tally) {
        let ended = tally.seconds().len().saturating_sub(1);
        for second in &tally.seconds()[self.told.min(ended)..ended] {
            if self.is_watched {
                let _ = writeln!(io::stderr(), "{}", line(second));
            }
        }
        self.told = ended;
    }
}

fn line(second: &Second) -> String {
    let Second { second, attempts, allowed, denied, errors } = second;
    format!(
        "{second:>5} s  attempts {attempts:>8}  allowed {allowed:>8}  denied {denied:>8}  errors {errors:>8}"
    )
}
