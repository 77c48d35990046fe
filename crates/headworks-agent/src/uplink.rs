//! The uplink: keeps a stream open to a parent, and turns what happens on it into events for the node's owner.
//!
//! Agents and aggregators use the same one; what they say and do with a plan is their own business.

mod dial;

pub use dial::Dialer;

use std::time::Duration;

use headworks_core::message::{Hello, Plan, Report};
use headworks_proto::wire::tree_client::TreeClient;
use headworks_proto::{MAX_PLAN_BYTES, wire};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::Channel;

use dial::DialError;
use headworks_core::backoff::Backoff;

/// A stream that lived this long was healthy: the next attempt may come soon again.
const HEALTHY: Duration = Duration::from_secs(5);
/// Messages waiting to be sent; more means that the link is stuck, and what is newer waits at its source.
const OUTBOX: usize = 4;
/// How long a leaving node waits for its last words to be heard.
const FAREWELL: Duration = Duration::from_secs(2);

/// What happens on a stream. `link` is the index that the owner gave it.
#[derive(Debug)]
pub enum Event {
    /// A connection is up: the owner must say hello now.
    Attached {
        /// Which link.
        link: usize,
        /// The address attached to.
        parent: String,
        /// Where to say things; dropping it closes the stream.
        outbox: Outbox,
    },
    /// A plan came.
    Plan {
        /// Which link.
        link: usize,
        /// The plan.
        plan: Plan,
        /// Entries that made no sense and were left out.
        refused: u32,
    },
    /// The stream is gone; another attempt is under way.
    Detached {
        /// Which link.
        link: usize,
    },
}

/// Where a node says things to its parent. Never waits: what finds no room is said anew, newer, later.
#[derive(Debug)]
pub struct Outbox(mpsc::Sender<wire::ChildMessage>);

impl Outbox {
    /// Introduces the node; the first message of a stream.
    pub fn hello(&self, hello: &Hello) {
        self.send(headworks_proto::hello_message(hello));
    }

    /// Sends a report. Ask [`Outbox::has_room`] before making one.
    pub fn report(&self, report: &Report) {
        self.send(headworks_proto::report_message(report));
    }

    /// Says that the node leaves on purpose.
    pub fn goodbye(&self) {
        self.send(headworks_proto::goodbye_message());
    }

    /// Whether a report would be sent now.
    pub fn has_room(&self) -> bool {
        self.0.capacity() > 0
    }

    fn send(&self, message: wire::ChildMessage) {
        // A full or closed outbox loses nothing: counts are cumulative, the next report tells all.
        let _ = self.0.try_send(message);
    }
}

/// Orders parents so that each node prefers another one, the same at every start.
pub fn by_rendezvous(node: &str, addresses: &[String]) -> Vec<String> {
    let mut ordered = addresses.to_vec();
    ordered.sort_by_cached_key(|address| std::cmp::Reverse(rank(node, address)));
    ordered
}

/// FNV-1a with a final mix: stable between releases and machines, which the standard hasher is not.
fn rank(node: &str, address: &str) -> u64 {
    let bytes = node.bytes().chain([0]).chain(address.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Keeps a stream open to one of `targets` until `shutdown`, trying the next one after each failure.
pub async fn keep_attached(
    link: usize,
    targets: Vec<String>,
    dialer: Dialer,
    events: mpsc::Sender<Event>,
    shutdown: CancellationToken,
) {
    let mut backoff = Backoff::default();
    for target in targets.iter().cycle() {
        let began = Instant::now();
        let failure = attach(link, target, &dialer, &events, &shutdown).await;
        if shutdown.is_cancelled() {
            return;
        }
        if began.elapsed() >= HEALTHY {
            backoff = Backoff::default();
        }
        let wait = backoff.next(fastrand::f64());
        tracing::warn!(parent = %target, cause = %failure, retry_in = ?wait, "not attached");
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = sleep(wait) => {}
        }
    }
}

/// One stream from connect to end; what ended it.
async fn attach(
    link: usize,
    target: &str,
    dialer: &Dialer,
    events: &mpsc::Sender<Event>,
    shutdown: &CancellationToken,
) -> Failure {
    let channel = tokio::select! {
        () = shutdown.cancelled() => return Failure::Leaving,
        channel = dialer.connect(target) => match channel {
            Ok(channel) => channel,
            Err(error) => return Failure::Dial(error),
        },
    };
    let (outbox, outgoing) = mpsc::channel(OUTBOX);
    let attached = Event::Attached { link, parent: target.to_owned(), outbox: Outbox(outbox) };
    if events.send(attached).await.is_err() {
        return Failure::Leaving;
    }
    let failure = listen(link, target, channel, outgoing, events).await;
    let _ = events.send(Event::Detached { link }).await;
    failure
}

/// Hears plans until the stream ends. A node that leaves drops its outbox, whereupon the parent ends the stream.
async fn listen(
    link: usize,
    target: &str,
    channel: Channel,
    outgoing: mpsc::Receiver<wire::ChildMessage>,
    events: &mpsc::Sender<Event>,
) -> Failure {
    let mut client = TreeClient::new(channel).max_decoding_message_size(MAX_PLAN_BYTES);
    let mut plans = match client.attach(ReceiverStream::new(outgoing)).await {
        Ok(response) => response.into_inner(),
        Err(status) => return Failure::Status(Box::new(dial::explain(target, status))),
    };
    tracing::info!(parent = %target, "attached");
    loop {
        match plans.message().await {
            Ok(Some(message)) => match headworks_proto::decode_plan(message) {
                Ok((plan, refused)) => {
                    if events.send(Event::Plan { link, plan, refused }).await.is_err() {
                        return Failure::Leaving;
                    }
                }
                Err(error) => tracing::warn!(parent = %target, %error, "plan refused"),
            },
            Ok(None) => return Failure::Ended,
            Err(status) => return Failure::Status(Box::new(status)),
        }
    }
}

/// Waits until the streams have ended, so that last words are heard; not for ever.
pub async fn drain(inbox: &mut mpsc::Receiver<Event>, streams: &TaskTracker) {
    let emptied = async {
        loop {
            tokio::select! {
                () = streams.wait() => return,
                // Late plans must not fill the channel and block the streams from ending.
                Some(_) = inbox.recv() => {}
            }
        }
    };
    let _ = timeout(FAREWELL, emptied).await;
}

/// What ended a stream.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("could not connect: {}", chain(.0))]
    Dial(DialError),
    #[error("stream failed: {} ({:?})", .0.message(), .0.code())]
    Status(Box<tonic::Status>),
    #[error("parent ended the stream")]
    Ended,
    #[error("leaving")]
    Leaving,
}

/// An error with its causes: tonic's own words stop at "transport error".
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_prefer_parents_evenly_and_always_alike() {
        let parents: Vec<String> = (0..4).map(|i| format!("http://10.0.0.{i}:7100")).collect();
        let mut first = vec![0; 4];
        for node in 0..4000 {
            let ordered = by_rendezvous(&format!("agent-{node}"), &parents);
            assert_eq!(ordered, by_rendezvous(&format!("agent-{node}"), &parents));
            first[parents.iter().position(|p| *p == ordered[0]).unwrap()] += 1;
        }
        assert!(first.iter().all(|count| (800..1200).contains(count)), "{first:?}");
    }
}
