//! Demo traffic: a steady stream under the limits, and a surge now and then.

use std::sync::Arc;
use std::time::Duration;

use headworks_agent::{Attributes, Limiter};
use headworks_core::limits::LimitSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How often due requests are sent.
const STEP: Duration = Duration::from_millis(5);
/// Seconds from one surge to the next, and when in this time a surge begins and ends.
const PERIOD: f64 = 20.0;
const SURGE: std::ops::Range<f64> = 8.0..16.0;
/// What a stream offers of its limit in ordinary times, and in a surge.
const CALM: f64 = 0.75;
const HIGH: f64 = 3.0;

/// One stream of like requests.
struct Stream {
    attributes: Vec<(String, String)>,
    /// Requests a second that make up its limit.
    limit: f64,
    due: f64,
}

/// Sends requests to all agents alike until `shutdown`.
pub(super) async fn run(limiters: Vec<Limiter>, limits: Arc<LimitSet>, shutdown: CancellationToken) {
    let mut streams = streams(&limits);
    let mut step = interval(STEP);
    step.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let began = Instant::now();
    let mut last = began;
    while shutdown.run_until_cancelled(step.tick()).await.is_some() {
        let now = Instant::now();
        let (elapsed, seconds) = ((now - began).as_secs_f64(), (now - last).as_secs_f64().min(0.5));
        last = now;
        let level = if SURGE.contains(&(elapsed % PERIOD)) { HIGH } else { CALM };
        for stream in &mut streams {
            stream.send(&limiters, level * seconds);
        }
    }
}

impl Stream {
    fn send(&mut self, limiters: &[Limiter], seconds_worth: f64) {
        self.due += self.limit * seconds_worth;
        let attributes: Vec<(&str, &str)> =
            self.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut agents = limiters.iter().cycle().skip(fastrand::usize(..limiters.len()));
        while self.due >= 1.0 {
            self.due -= 1.0;
            if let Some(limiter) = agents.next() {
                limiter.check(Attributes::new(&attributes), None);
            }
        }
    }
}

/// One stream for each distinct `match`, so that every limit without `per` is met; callers take turns where a limit
/// tells them apart, so that no caller is over its own limit in calm times.
fn streams(limits: &LimitSet) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    for limit in limits.limits().iter().filter(|limit| limit.per.is_empty()) {
        let rate = limit.rate.per_second();
        let rate = if rate.is_finite() { rate.min(20_000.0) } else { 1_000.0 };
        let mut attributes = limit.matches.clone();
        if !attributes.iter().any(|(key, _)| key == "caller") {
            attributes.push(("caller".to_owned(), "web".to_owned()));
        }
        streams.push(Stream { attributes, limit: rate, due: 0.0 });
    }
    streams
}
