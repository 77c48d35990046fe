//! The lanes of an open loop: one for each target, with its connections, and the requests that are under way on them.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::client::{Client, Connection};
use super::outcome::Outcome;

/// All lanes, taken in turn.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    in_flight: JoinSet<Return>,
    connections: usize,
    timeout: Duration,
}

/// One target, with its idle connections; the last one used is the first to be used again, so that few are kept warm.
struct Lane {
    client: Arc<Client>,
    idle: Vec<Connection>,
}

/// What a request brings home.
struct Return {
    answer: Answer,
    lane: usize,
    connection: Option<Connection>,
}

/// What became of a request that was sent.
pub(super) struct Answer {
    pub(super) number: u64,
    pub(super) sent: Instant,
    pub(super) at: Instant,
    pub(super) outcome: Outcome,
}

impl Lanes {
    /// One lane for each client, with this many connections over all of them. A request that has no answer this long
    /// after it was due has failed.
    pub(super) fn new(clients: Vec<Arc<Client>>, connections: usize, timeout: Duration) -> Self {
        let lanes = clients.into_iter().map(|client| Lane { client, idle: Vec::new() }).collect();
        Self { lanes, in_flight: JoinSet::new(), connections, timeout }
    }

    /// Whether every connection has a request under way.
    pub(super) fn are_busy(&self) -> bool {
        self.in_flight.len() >= self.connections
    }

    /// Sends a request, on one connection more if all are busy.
    pub(super) fn send(&mut self, number: u64, due: Instant) {
        let lane = usize::try_from(number).unwrap_or(0) % self.lanes.len();
        let client = self.lanes[lane].client.clone();
        let idle = self.lanes[lane].idle.pop();
        let deadline = due + self.timeout;
        self.in_flight.spawn(async move {
            let sent = Instant::now();
            let (outcome, connection) = client.ask(idle, deadline).await;
            Return { answer: Answer { number, sent, at: Instant::now(), outcome }, lane, connection }
        });
    }

    /// The next answer, or nothing if none is to come; an error for a request that was aborted. Safe to drop and call
    /// again.
    pub(super) async fn next(&mut self) -> Option<Result<Answer, JoinError>> {
        let back = self.in_flight.join_next().await?;
        Some(back.map(|Return { answer, lane, connection }| {
            self.lanes[lane].idle.extend(connection);
            answer
        }))
    }

    /// Gives up all requests that are under way.
    pub(super) fn abort(&mut self) {
        self.in_flight.abort_all();
    }
}
