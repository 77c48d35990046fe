//! The closed loop: each connection asks again as soon as it is answered. Tells throughput, not latency under load.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::args::LoadArgs;
use super::client::Client;
use super::interrupt::Interrupt;
use super::outcome::{Failure, Outcome};
use super::progress::Progress;
use super::tally::Tally;

/// Rest after a failed connect, without which an absent server makes a busy loop.
const REST: Duration = Duration::from_millis(50);
/// How often an asker hands in what it has counted.
const HAND_IN: Duration = Duration::from_secs(1);

/// Loads the targets on this many connections until time is over or the user has enough.
pub(super) async fn run(
    clients: &[Arc<Client>],
    connections: usize,
    args: &LoadArgs,
    start: Instant,
) -> Tally {
    let (sender, mut tallies) = mpsc::channel(connections);
    let stop = CancellationToken::new();
    for client in clients.iter().cycle().take(connections) {
        let asker = Asker {
            client: client.clone(),
            start,
            end: start + args.duration,
            timeout: args.timeout,
            stop: stop.clone(),
            tallies: sender.clone(),
        };
        tokio::spawn(asker.run());
    }
    drop(sender);

    let mut total = Tally::new();
    let mut interrupt = Interrupt::new();
    let mut progress = Progress::new(start);
    loop {
        tokio::select! {
            tally = tallies.recv() => match tally {
                Some(tally) => total.merge(&tally),
                None => return total,
            },
            () = progress.tick() => progress.tell(&total),
            () = interrupt.next() => stop.cancel(),
        }
    }
}

/// One connection's worth of asking.
struct Asker {
    client: Arc<Client>,
    start: Instant,
    end: Instant,
    timeout: Duration,
    stop: CancellationToken,
    tallies: mpsc::Sender<Box<Tally>>,
}

impl Asker {
    async fn run(self) {
        let mut tally = Tally::new();
        let mut handed_in = self.start;
        let mut idle = None;
        let mut now = Instant::now();
        while now < self.end && !self.stop.is_cancelled() {
            let sent = now;
            let (outcome, connection) = self.client.ask(idle, sent + self.timeout).await;
            idle = connection;
            now = Instant::now();
            let is_away = outcome == Outcome::Failed(Failure::Connect);
            tally.record(sent - self.start, now - sent, outcome);
            if is_away {
                sleep(REST).await;
                now = Instant::now();
            }
            if now - handed_in > HAND_IN {
                self.hand_in(std::mem::replace(&mut tally, Tally::new())).await;
                handed_in = now;
            }
        }
        self.hand_in(tally).await;
    }

    /// Fails only when nobody counts any more.
    async fn hand_in(&self, tally: Tally) {
        let _ = self.tallies.send(Box::new(tally)).await;
    }
}
