//! The uplink: keeps a stream open to a parent, and turns what happens on it into events for the node's owner.
//!
//! Agents and aggregators use the same one; what they say and do with a plan is their own business.

mod dial;
mod names;
mod route;

use std::time::Duration;

use headworks_core::message::{Hello, Plan, Report};
use headworks_core::units::Moment;
use headworks_proto::wire::tree_client::TreeClient;
use headworks_proto::{MAX_PLAN_BYTES, wire};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Streaming;

use crate::Clock;
use dial::DialError;
use names::Names;
use route::{Candidate, Route};

pub use dial::Dialer;
pub use route::Stay;

/// Time in which a parent has to answer a hello, from the first packet on; then another is tried.
const OPENING: Duration = Duration::from_secs(5);
/// Messages waiting to be sent; more means that the link is stuck, and what is newer waits at its source.
const OUTBOX: usize = 4;
/// How long a leaving node waits for its last words to be heard.
const FAREWELL: Duration = Duration::from_secs(2);

/// What happens on a stream. `link` is the index that the owner gave it.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "plans are most of the events, and few wait at once")]
pub enum Event {
    /// A connection is up: the owner must say hello now. If it has a parent, that one stays until this one has answered.
    Greet {
        /// Which link.
        link: usize,
        /// Where to say hello, and nothing else yet.
        outbox: Outbox,
    },
    /// The parent has answered. The owner leaves the one it had, if any, and reports here from now on.
    Attached {
        /// Which link.
        link: usize,
        /// The address attached to.
        parent: String,
        /// Where to say things; dropping it ends the stream.
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
#[derive(Clone, Debug)]
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
fn by_rendezvous<T>(node: &str, parents: &mut [T], label: impl Fn(&T) -> String) {
    parents.sort_by_cached_key(|parent| std::cmp::Reverse(rank(node, &label(parent))));
}

/// FNV-1a with a final mix: stable between releases and machines, which the standard hasher is not.
fn rank(node: &str, address: &str) -> u64 {
    let bytes = node.bytes().chain([0]).chain(address.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The possible parents of one link; it attaches to one of them at a time.
#[derive(Clone, Debug)]
pub struct Parents {
    /// The node that looks for a parent: each prefers another one.
    pub node: String,
    /// URLs such as `http://10.0.0.1:7100`, or with a name, every address of which is a parent of its own.
    pub urls: Vec<String>,
    /// How long to stay with one.
    pub stay: Stay,
    /// How to reach them.
    pub dialer: Dialer,
}

/// Keeps a stream open to one of `parents` until `shutdown`: the next one is tried after each failure, a better one now
/// and then.
pub async fn keep_attached(
    link: usize,
    parents: Parents,
    events: mpsc::Sender<Event>,
    shutdown: CancellationToken,
) {
    let (names, route) = (Names::new(parents.node, parents.urls), Route::new(parents.stay));
    let mut uplink = Uplink { link, names, route, dialer: parents.dialer, clock: Clock::new(), events };
    loop {
        let Some(mut stream) = shutdown.run_until_cancelled(uplink.find()).await else { return };
        let failure = uplink.keep(&mut stream, &shutdown).await;
        let gone = uplink.events.send(Event::Detached { link }).await.is_err();
        if gone || shutdown.is_cancelled() {
            return;
        }
        let wait = uplink.route.lost(stream.heard, uplink.clock.now(), fastrand::f64());
        tracing::warn!(parent = %stream.candidate.label(), cause = %failure, retry_in = ?wait, "not attached");
        if shutdown.run_until_cancelled(sleep(wait)).await.is_none() {
            return;
        }
    }
}

/// One link upwards: what is known of its parents, and whom to tell what happens.
struct Uplink {
    link: usize,
    names: Names,
    route: Route,
    dialer: Dialer,
    clock: Clock,
    events: mpsc::Sender<Event>,
}

impl Uplink {
    /// A stream to whoever answers first, in order of preference.
    async fn find(&mut self) -> Stream {
        loop {
            if self.route.begins_a_round() {
                self.look_up().await;
            }
            let failure = match self.route.candidate().cloned() {
                Some(candidate) => match self.open(&candidate).await {
                    Ok(mut stream) => {
                        self.announce(&mut stream, false).await;
                        return stream;
                    }
                    Err(failure) => failure,
                },
                None => Failure::NoAddress,
            };
            let parent = self.route.candidate().map(Candidate::label).unwrap_or_default();
            let wait = self.route.failed(fastrand::f64());
            tracing::warn!(parent, cause = %failure, retry_in = ?wait, "not attached");
            sleep(wait).await;
        }
    }

    /// Stays on the stream, or moves to a better parent without a moment between the two; returns what ended it.
    async fn keep(&mut self, stream: &mut Stream, shutdown: &CancellationToken) -> Failure {
        loop {
            let (due, clock) = (self.route.due(), self.clock);
            tokio::select! {
                failure = stream.listen(self.link, &self.events) => return failure,
                () = until(due, clock), if !shutdown.is_cancelled() => {}
            }
            let (link, events) = (self.link, self.events.clone());
            let found = tokio::select! {
                failure = stream.listen(link, &events) => return failure,
                found = self.look() => found,
            };
            if let Some(better) = found {
                let mut left = std::mem::replace(stream, better);
                self.announce(stream, left.heard).await;
                // It ends when its parent has heard the goodbye; dropped at once, the goodbye would go with it.
                tokio::spawn(async move { timeout(FAREWELL, left.run_out()).await });
            }
        }
    }

    /// Looks for a better parent while the stream goes on.
    async fn look(&mut self) -> Option<Stream> {
        self.look_up().await;
        let better = self.route.better(self.clock.now());
        for candidate in &better {
            match self.open(candidate).await {
                Ok(stream) => return Some(stream),
                Err(failure) => {
                    tracing::debug!(parent = %candidate.label(), cause = %failure, "not moved to a better parent");
                }
            }
        }
        self.route.stayed(!better.is_empty(), self.clock.now(), fastrand::f64());
        None
    }

    async fn look_up(&mut self) {
        self.names.look_up().await;
        self.route.know(self.names.candidates(), self.names.is_complete());
    }

    /// Opens a stream and has the owner say hello; done when the parent has answered.
    async fn open(&self, candidate: &Candidate) -> Result<Stream, Failure> {
        timeout(OPENING, self.greet(candidate)).await.unwrap_or(Err(Failure::NoAnswer))
    }

    async fn greet(&self, candidate: &Candidate) -> Result<Stream, Failure> {
        let channel = self.dialer.connect(candidate).await.map_err(Failure::Dial)?;
        let (outbox, outgoing) = mpsc::channel(OUTBOX);
        let outbox = Outbox(outbox);
        let greet = Event::Greet { link: self.link, outbox: outbox.clone() };
        self.events.send(greet).await.map_err(|_| Failure::Leaving)?;
        let mut client = TreeClient::new(channel).max_decoding_message_size(MAX_PLAN_BYTES);
        let answer = client.attach(ReceiverStream::new(outgoing)).await;
        let plans = answer
            .map_err(|status| Failure::Status(Box::new(dial::explain(candidate, status))))?
            .into_inner();
        Ok(Stream { candidate: candidate.clone(), outbox: Some(outbox), plans, heard: false })
    }

    /// Hands the stream to the owner; `heard` tells whether a plan came over the one that it replaces.
    async fn announce(&mut self, stream: &mut Stream, heard: bool) {
        let parent = stream.candidate.label();
        let random = [fastrand::f64(), fastrand::f64()];
        self.route.attached(stream.candidate.clone(), heard, self.clock.now(), random);
        tracing::info!(parent, url = stream.candidate.url, "attached");
        if let Some(outbox) = stream.outbox.take() {
            // An owner that is gone has dropped its end of everything, and the stream ends by itself.
            let _ = self.events.send(Event::Attached { link: self.link, parent, outbox }).await;
        }
    }
}

async fn until(due: Option<Moment>, clock: Clock) {
    match due {
        Some(due) => sleep(due.since(clock.now())).await,
        None => std::future::pending().await,
    }
}

/// A stream on which a parent has answered.
struct Stream {
    candidate: Candidate,
    /// For the owner, until it has it.
    outbox: Option<Outbox>,
    plans: Streaming<wire::ParentMessage>,
    /// A plan came.
    heard: bool,
}

impl Stream {
    /// Hears plans until the stream ends. A node that leaves drops its outbox, whereupon the parent ends the stream. May be
    /// dropped and called again at any moment: a plan is taken only when there is room for its event.
    async fn listen(&mut self, link: usize, events: &mpsc::Sender<Event>) -> Failure {
        loop {
            let Ok(room) = events.reserve().await else { return Failure::Leaving };
            match self.plans.message().await {
                Ok(Some(message)) => match headworks_proto::decode_plan(message) {
                    Ok((plan, refused)) => {
                        self.heard = true;
                        room.send(Event::Plan { link, plan, refused });
                    }
                    Err(error) => {
                        tracing::warn!(parent = %self.candidate.label(), %error, "plan refused");
                    }
                },
                Ok(None) => return Failure::Ended,
                Err(status) => return Failure::Status(Box::new(status)),
            }
        }
    }

    /// Hears the rest of a stream that nobody goes by any more.
    async fn run_out(&mut self) {
        while let Ok(Some(_)) = self.plans.message().await {}
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
    #[error("no answer within {OPENING:?}")]
    NoAnswer,
    #[error("no parent has an address; check the names and the name server")]
    NoAddress,
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

    fn ordered(node: &str, parents: &[String]) -> Vec<String> {
        let mut ordered = parents.to_vec();
        by_rendezvous(node, &mut ordered, String::clone);
        ordered
    }

    #[test]
    fn nodes_prefer_parents_evenly_and_always_alike() {
        let parents: Vec<String> = (0..4).map(|i| format!("http://10.0.0.{i}:7100")).collect();
        let mut first = vec![0; 4];
        for node in 0..4000 {
            let order = ordered(&format!("agent-{node}"), &parents);
            assert_eq!(order, ordered(&format!("agent-{node}"), &parents));
            first[parents.iter().position(|p| *p == order[0]).unwrap()] += 1;
        }
        assert!(first.iter().all(|count| (800..1200).contains(count)), "{first:?}");
    }
}
