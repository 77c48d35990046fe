//! Sampling: an open loop by a timetable, for those who measure by themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::LoadError;
use super::client::Client;
use super::lanes::{Answer, Lanes};
use super::outcome::Outcome;
use super::schedule::Schedule;
use super::target::Target;

/// A request that has no answer this long after it was due has no verdict.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Connections to each target at most. Few are open as long as answers come at once; this many let a target that
/// pauses for a while be asked on.
const CONNECTIONS: usize = 64;

/// One request, in time since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When the timetable had it.
    pub(crate) due: Duration,
    /// When it was sent.
    pub(crate) sent: Duration,
    /// Whether it was allowed; nothing if no verdict came.
    pub(crate) allowed: Option<bool>,
}

/// Asks the targets in turn, one request at each of these times from the start, and waits for the last answers.
/// Dropped, it gives up all that is under way.
pub(crate) async fn sample(
    targets: &[Target],
    key: &str,
    times: Vec<Duration>,
    start: Instant,
) -> Result<Vec<Sample>, LoadError> {
    let mut clients = Vec::with_capacity(targets.len());
    for target in targets {
        let address = target.resolve(false).await?;
        clients.push(Arc::new(Client::new(target, address, &super::args::query(key, &[]))));
    }
    let lanes = Lanes::new(clients, CONNECTIONS * targets.len(), TIMEOUT);
    let samples = Vec::with_capacity(times.len());
    let schedule = Schedule::At(times.into());
    let due = schedule.play(start.into_std());
    let mut sampling = Sampling { schedule, start, lanes, samples };
    sampling.send_all(due).await;
    Ok(sampling.samples)
}

struct Sampling {
    schedule: Schedule,
    start: Instant,
    lanes: Lanes,
    samples: Vec<Sample>,
}

impl Sampling {
    async fn send_all(&mut self, mut due: mpsc::Receiver<u64>) {
        let mut is_over = false;
        loop {
            tokio::select! {
                biased;
                Some(back) = self.lanes.next() => self.take_back(back.ok()),
                // Those that find no connection free wait here: all that is wanted is offered, and lateness tells when.
                number = due.recv(), if !is_over && !self.lanes.are_busy() => match number {
                    Some(number) => self.lanes.send(number, self.start + self.schedule.due(number)),
                    None => is_over = true,
                },
                else => return,
            }
        }
    }

    /// None is ever aborted while somebody waits for it.
    fn take_back(&mut self, answer: Option<Answer>) {
        let Some(Answer { number, sent, outcome, .. }) = answer else { return };
        let allowed = match outcome {
            Outcome::Allowed => Some(true),
            Outcome::Denied(_) => Some(false),
            Outcome::Failed(_) => None,
        };
        let sent = sent.saturating_duration_since(self.start);
        self.samples.push(Sample { due: self.schedule.due(number), sent, allowed });
    }
}
