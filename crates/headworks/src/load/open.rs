//! The open loop: requests leave when they are due, whatever the answers take.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::args::LoadArgs;
use super::client::{Client, Connection};
use super::interrupt::Interrupt;
use super::outcome::{Failure, Outcome};
use super::progress::Progress;
use super::schedule::Schedule;
use super::tally::Tally;

/// Requests that may be due and not yet looked at; beyond, the schedule waits and catches up, and latency tells it.
const DUE: usize = 4096;

/// Loads the targets in turn until the schedule is over or the user has enough, and waits for the last answers.
pub(super) async fn run(clients: Vec<Arc<Client>>, args: &LoadArgs, start: Instant) -> Tally {
    let schedule = Schedule { rps: args.rps, length: args.duration };
    let (sender, due) = mpsc::channel(DUE);
    schedule.play(start.into_std(), sender);
    let lanes = clients.into_iter().map(|client| Lane { client, idle: Vec::new() }).collect();
    let mut open = OpenLoop {
        schedule,
        start,
        timeout: args.timeout,
        connections: args.connections,
        lanes,
        in_flight: JoinSet::new(),
        tally: Tally::new(),
        interrupt: Interrupt::new(),
    };
    open.send_all(due).await;
    open.wait_for_the_rest().await;
    open.tally
}

struct OpenLoop {
    schedule: Schedule,
    start: Instant,
    timeout: Duration,
    connections: usize,
    lanes: Vec<Lane>,
    in_flight: JoinSet<Return>,
    tally: Tally,
    interrupt: Interrupt,
}

/// One target, with its idle connections; the last one used is the first to be used again, so that few are kept warm.
struct Lane {
    client: Arc<Client>,
    idle: Vec<Connection>,
}

/// What a request brings home.
struct Return {
    number: u64,
    at: Instant,
    outcome: Outcome,
    lane: usize,
    connection: Option<Connection>,
}

impl OpenLoop {
    async fn send_all(&mut self, mut due: mpsc::Receiver<u64>) {
        let mut progress = Progress::new(self.start);
        loop {
            tokio::select! {
                biased;
                () = self.interrupt.next() => return,
                () = progress.tick() => progress.tell(&self.tally),
                Some(back) = self.in_flight.join_next() => self.take_back(back),
                number = due.recv() => match number {
                    Some(number) => self.send(number),
                    None => return,
                },
            }
        }
    }

    /// Each has its own deadline, so this ends; a user who will not wait for it interrupts once more.
    async fn wait_for_the_rest(&mut self) {
        loop {
            tokio::select! {
                back = self.in_flight.join_next() => match back {
                    Some(back) => self.take_back(back),
                    None => return,
                },
                () = self.interrupt.next() => break,
            }
        }
        self.in_flight.abort_all();
        while let Some(back) = self.in_flight.join_next().await {
            self.take_back(back);
        }
    }

    fn send(&mut self, number: u64) {
        let due = self.start + self.schedule.due(number);
        if self.in_flight.len() >= self.connections {
            return self.record(number, due, Outcome::Failed(Failure::Overrun));
        }
        let lane = usize::try_from(number).unwrap_or(0) % self.lanes.len();
        let client = self.lanes[lane].client.clone();
        let idle = self.lanes[lane].idle.pop();
        let deadline = due + self.timeout;
        self.in_flight.spawn(async move {
            let (outcome, connection) = client.ask(idle, deadline).await;
            Return { number, at: Instant::now(), outcome, lane, connection }
        });
    }

    fn take_back(&mut self, back: Result<Return, JoinError>) {
        match back {
            Ok(Return { number, at, outcome, lane, connection }) => {
                self.lanes[lane].idle.extend(connection);
                self.record(number, at, outcome);
            }
            // Aborted: which one it was is lost, and it counts in the last second.
            Err(_) => {
                let number = self.schedule.requests().saturating_sub(1);
                self.record(number, self.start, Outcome::Failed(Failure::Unfinished));
            }
        }
    }

    fn record(&mut self, number: u64, at: Instant, outcome: Outcome) {
        let due = self.schedule.due(number);
        self.tally.record(due, at.saturating_duration_since(self.start + due), outcome);
    }
}
