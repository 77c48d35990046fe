//! Demo traffic: a steady stream under the limits, and a surge now and then.

use std::sync::Arc;
use std::time::Duration;

use headworks_agent::{Attributes, Limiter};
use headworks_core::limits::LimitSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How often due requests are sent.
const STEP: Duration = Duration::from_millis(2);
/// Seconds from one surge to the next, and when in this time a surge begins and ends.
const PERIOD: f64 = 20.0;
const SURGE: std::ops::Range<f64> = 8.0..16.0;
/// What a stream offers of its limit in ordinary times, and in a surge.
const CALM: f64 = 0.75;
const HIGH: f64 = 3.0;

/// Who asks, in turn.
const CALLERS: [&str; 4] = ["web", "mobile", "partner", "batch"];

/// One stream of like requests.
struct Stream {
    attributes: Vec<(String, String)>,
    /// Requests a second that make up its limit.
    limit: f64,
    due: f64,
    sent: usize,
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
        let mut attributes: Vec<(&str, &str)> = vec![("caller", "")];
        attributes.extend(self.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        while self.due >= 1.0 {
            self.due -= 1.0;
            attributes[0].1 = CALLERS[self.sent % CALLERS.len()];
            // Callers in turn, and each of them at all agents in turn.
            let limiter = &limiters[(self.sent / CALLERS.len()) % limiters.len()];
            limiter.check(Attributes::new(&attributes), None);
            self.sent += 1;
        }
    }
}

/// One stream for each limit without `per` that is no ban, so that each of them is met.
fn streams(limits: &LimitSet) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    for limit in limits.limits().iter().filter(|limit| limit.per.is_empty() && !limit.rate.is_ban()) {
        let rate = limit.rate.per_second();
        let rate = if rate.is_finite() { rate.min(20_000.0) } else { 1_000.0 };
        let matched = limit.matches.iter().filter(|(key, _)| key != "caller");
        // Every star may stand for nothing.
        let attributes = matched.map(|(key, value)| (key.clone(), value.as_str().replace('*', ""))).collect();
        streams.push(Stream { attributes, limit: rate, due: 0.0, sent: 0 });
    }
    streams
}
