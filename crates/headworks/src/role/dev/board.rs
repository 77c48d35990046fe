//! What `dev` prints: how to try it, and a line a second for each limit.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use headworks_agent::{LimitStats, Limiter};
use headworks_core::bucket::Counts;
use headworks_core::limits::Mode;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Cells of the bar that draws a ratio.
const BAR: usize = 12;

/// The first lines: what runs, and what to try.
pub(super) fn welcome(http: SocketAddr, admin: SocketAddr) -> String {
    format!(
        "A fleet on loopback: 1 controller, 2 zones, 4 agents, and demo traffic with a surge every 20 s.\n\
         Ask an agent:   curl -i 'http://{http}/allow?key=you'\n\
         See the fleet:  http://{admin} in a browser, or headworks top --admin http://{admin}\n\
         Metrics:        curl http://{admin}/metrics\n\
         Ctrl-C ends it.\n"
    )
}

/// Prints what all agents counted in each second, until `shutdown`.
pub(super) async fn show(limiters: &[Limiter], shutdown: CancellationToken) {
    let began = Instant::now();
    let mut last = began;
    let mut before: HashMap<Arc<str>, Counts> = HashMap::new();
    let mut second = interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Skip);
    second.tick().await;
    while shutdown.run_until_cancelled(second.tick()).await.is_some() {
        let now = Instant::now();
        let seconds = (now - last).as_secs_f64();
        last = now;
        for limit in together(limiters) {
            let counted = limit.counts.since(before.get(&limit.limit.name).copied().unwrap_or_default());
            before.insert(limit.limit.name.clone(), limit.counts);
            println!("{}", line((now - began).as_secs(), &limit, counted, seconds));
        }
    }
}

/// The limits with the counts of all agents added up.
fn together(limiters: &[Limiter]) -> Vec<LimitStats> {
    let mut sums: Vec<LimitStats> = Vec::new();
    for stats in limiters.iter().flat_map(|limiter| limiter.stats().limits) {
        match sums.iter_mut().find(|sum| sum.limit.name == stats.limit.name) {
            Some(sum) => {
                sum.counts += stats.counts;
                if stats.drop_ratio > sum.drop_ratio {
                    sum.drop_ratio = stats.drop_ratio;
                }
            }
            None => sums.push(stats),
        }
    }
    sums
}

#[allow(clippy::cast_precision_loss, reason = "no second counts 2^53 units")]
fn line(elapsed: u64, limit: &LimitStats, counted: Counts, seconds: f64) -> String {
    let per_second = |units: u64| format!("{:.0}/s", units as f64 / seconds);
    // In its own unit: by the second, 6 a minute would read as none.
    let (rate, ratio) = (limit.limit.rate.to_string(), limit.drop_ratio.value());
    let shadow = limit.limit.mode == Mode::Shadow;
    let (dropped, what) =
        if shadow { (counted.would_drop, "would drop") } else { (counted.dropped, "dropped") };
    format!(
        "{elapsed:>4}s  {:<20} limit {rate:>12}  offered {:>8}  admitted {:>8}  {what} {:>8}  ratio {ratio:.3} {}",
        limit.limit.name,
        per_second(counted.offered),
        per_second(counted.admitted()),
        per_second(dropped),
        bar(ratio),
    )
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "0..=12"
)]
fn bar(ratio: f64) -> String {
    let full = (ratio * BAR as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "·".repeat(BAR - full.min(BAR)))
}
