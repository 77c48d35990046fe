//! The task that asks the fleet, once a second for all viewers together.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Console;
use super::sample::Sample;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// The owner's time that samples may take, as one part of so many. With a million buckets one takes a good part of a second, and
/// the owner has a fleet to hold.
const PART: u32 = 50;

/// Samples until `closing`, also while nobody looks: whoever opens the page during a surge wants to see how it began.
pub(super) async fn run(console: Console, beats: watch::Sender<u64>, closing: CancellationToken) {
    let mut pause = Duration::ZERO;
    while closing.run_until_cancelled(sleep(pause)).await.is_some() {
        let watched = console.watching.limits();
        let Some(sample) =
            console.running.fleet.ask(move |seat, now| Sample::take(seat, now, &watched)).await
        else {
            return;
        };
        pause = pause_after(sample.took);
        let refusals = console.running.refusals.summary();
        console.board().take(sample, refusals, since_1970());
        beats.send_modify(|beat| *beat += 1);
    }
}

fn pause_after(took: Duration) -> Duration {
    INTERVAL.max(took * PART)
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_take_long_are_taken_seldom() {
        assert_eq!(pause_after(Duration::from_millis(2)), INTERVAL);
        assert_eq!(pause_after(Duration::from_millis(300)), Duration::from_secs(15));
    }
}
