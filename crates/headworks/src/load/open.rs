//! The open loop: requests leave when they are due, whatever the answers take.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::Instant;

use super::args::LoadArgs;
use super::client::Client;
use super::interrupt::Interrupt;
use super::lanes::{Answer, Lanes};
use super::outcome::{Failure, Outcome};
use super::progress::Progress;
use super::schedule::Schedule;
use super::tally::Tally;

/// Loads the targets in turn until the schedule is over or the user has enough, and waits for the last answers.
pub(super) async fn run(clients: Vec<Arc<Client>>, args: &LoadArgs, start: Instant) -> Tally {
    let schedule = Schedule::of(args.spacing, args.rps, args.duration);
    let due = schedule.play(start.into_std());
    let mut open = OpenLoop {
        schedule,
        start,
        lanes: Lanes::new(clients, args.connections, args.timeout),
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
    lanes: Lanes,
    tally: Tally,
    interrupt: Interrupt,
}

impl OpenLoop {
    async fn send_all(&mut self, mut due: mpsc::Receiver<u64>) {
        let mut progress = Progress::new(self.start);
        loop {
            tokio::select! {
                biased;
                () = self.interrupt.next() => return,
                () = progress.tick() => progress.tell(&self.tally),
                Some(back) = self.lanes.next() => self.take_back(back),
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
                back = self.lanes.next() => match back {
                    Some(back) => self.take_back(back),
                    None => return,
                },
                () = self.interrupt.next() => break,
            }
        }
        self.lanes.abort();
        while let Some(back) = self.lanes.next().await {
            self.take_back(back);
        }
    }

    fn send(&mut self, number: u64) {
        let due = self.start + self.schedule.due(number);
        if self.lanes.are_busy() {
            return self.record(number, due, Outcome::Failed(Failure::Overrun));
        }
        self.lanes.send(number, due);
    }

    fn take_back(&mut self, back: Result<Answer, JoinError>) {
        match back {
            Ok(Answer { number, at, outcome, .. }) => self.record(number, at, outcome),
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
