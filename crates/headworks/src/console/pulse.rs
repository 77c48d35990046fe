//! The task that asks the fleet, once a second for all viewers together.

use std::collections::VecDeque;
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
/// Samples by which the next pause goes, by the one of them that took least: on a busy machine any one takes long now and then,
/// when its thread has to wait for a processor.
const LAST: usize = 4;

/// Samples until `closing`, also while nobody looks: whoever opens the page during a surge wants to see how it began.
pub(super) async fn run(console: Console, beats: watch::Sender<u64>, closing: CancellationToken) {
    let mut pause = Duration::ZERO;
    let mut took = [Duration::ZERO; LAST].into_iter().collect();
    while closing.run_until_cancelled(sleep(pause)).await.is_some() {
        let watched = console.watching.limits();
        let Some(sample) =
            console.running.fleet.ask(move |seat, now| Sample::take(seat, now, &watched)).await
        else {
            return;
        };
        pause = pause_after(&mut took, sample.took);
        console.take(sample, since_1970()).await;
        beats.send_modify(|beat| *beat += 1);
    }
}

fn pause_after(last: &mut VecDeque<Duration>, took: Duration) -> Duration {
    last.pop_front();
    last.push_back(took);
    INTERVAL.max(PART * last.iter().copied().min().unwrap_or_default())
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_take_long_are_taken_seldom_but_not_for_one_of_them() {
        let mut last = [Duration::from_millis(2); LAST].into_iter().collect();
        let mut after = |millis| pause_after(&mut last, Duration::from_millis(millis));
        assert_eq!([after(300), after(300), after(300)], [INTERVAL; 3]);
        assert_eq!(after(400), Duration::from_secs(15));
        assert_eq!(after(2), INTERVAL);
    }
}
