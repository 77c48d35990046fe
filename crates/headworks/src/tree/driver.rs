//! The thread that owns a parent's state.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use headworks_agent::Clock;
use headworks_core::children::ChildId;
use headworks_core::message::{Hello, Plan, Report};
use headworks_core::node::Node;
use headworks_core::units::Moment;
use headworks_proto::{EncodedPlan, PlanEncoder};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use super::Seat;
use super::seat::Doubts;

/// Time between ticks of the law, and between heartbeats to children.
const TICK: Duration = Duration::from_secs(1);
/// News to children is gathered for this long, so that a surge on many of them is one push, not one for each.
const FLUSH: Duration = Duration::from_millis(20);
/// Time for taking what has arrived, until what follows from it is pushed.
const TAKING: Duration = Duration::from_millis(10);
/// How long each plan with news keeps the next push away, so that no more than 10 000 a second are sent besides heartbeats. In a
/// surge on ten thousand children, news would else be pushed to all of them fifty times a second. Heartbeats keep nothing away: what
/// is news after a quiet second is pushed at once.
const REST: Duration = Duration::from_micros(100);
/// Messages waiting for the owner; streams wait when it is behind.
const INBOX: usize = 4096;

/// One stream, while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(pub(crate) u64);

/// What a child is sent into: room for one plan. Boxed, since a channel has places for many, each as large as what it carries,
/// and there are as many channels as children.
pub(crate) enum PlanBox {
    /// Of one at the other end of a stream.
    Stream(mpsc::Sender<Box<EncodedPlan>>),
    /// Of one in this process.
    Here(mpsc::Sender<Box<Plan>>),
}

impl PlanBox {
    fn has_room(&self) -> bool {
        match self {
            Self::Stream(plans) => plans.capacity() > 0,
            Self::Here(plans) => plans.capacity() > 0,
        }
    }

    /// A child that is gone needs no plan.
    fn put(&self, plan: Plan, encoder: &mut PlanEncoder) {
        match self {
            Self::Stream(plans) => drop(plans.try_send(Box::new(encoder.encode(&plan)))),
            Self::Here(plans) => drop(plans.try_send(Box::new(plan))),
        }
    }
}

type Question<S> = Box<dyn FnOnce(&S, Moment) + Send>;

pub(crate) enum Input<S: Seat> {
    Hello {
        stream: StreamId,
        hello: Hello,
        plans: PlanBox,
    },
    Report {
        stream: StreamId,
        report: Report,
        refused: u32,
    },
    /// A message that made no sense as a whole.
    Nonsense {
        stream: StreamId,
        cause: String,
    },
    Gone {
        stream: StreamId,
    },
    Own(S::Event),
    Ask(Question<S>),
    Leave(oneshot::Sender<()>),
}

/// How the rest of the process speaks to the owner.
pub(crate) struct Handle<S: Seat> {
    inputs: mpsc::Sender<Input<S>>,
    streams: Arc<AtomicU64>,
}

impl<S: Seat> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Self { inputs: self.inputs.clone(), streams: self.streams.clone() }
    }
}

impl<S: Seat> Handle<S> {
    /// A child has come; what to call its stream.
    pub(crate) async fn greet(&self, hello: Hello, plans: PlanBox) -> StreamId {
        let stream = StreamId(self.streams.fetch_add(1, Relaxed));
        self.send(Input::Hello { stream, hello, plans }).await;
        stream
    }

    pub(crate) async fn send(&self, input: Input<S>) {
        // The owner ends last; a message that finds it gone has nobody left to matter to.
        let _ = self.inputs.send(input).await;
    }

    /// Hands the owner something that only its kind of node knows.
    pub(crate) async fn own(&self, event: S::Event) {
        self.send(Input::Own(event)).await;
    }

    /// Asks the owner; `None` when it has ended.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&S, Moment) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.send(Input::Ask(Box::new(move |seat, now| {
            let _ = answer.send(question(seat, now));
        })))
        .await;
        answered.await.ok()
    }

    /// Lets the owner say its last words upwards, and end.
    pub(crate) async fn leave(&self) {
        let (done, left) = oneshot::channel();
        self.send(Input::Leave(done)).await;
        let _ = left.await;
    }
}

/// Starts the owner's thread. It has a runtime of its own, so that a busy server cannot make the tick late.
pub(crate) fn start<S: Seat>(name: &str, seat: S, clock: Clock) -> std::io::Result<Handle<S>> {
    let (inbox, inputs) = mpsc::channel(INBOX);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let driver = Driver {
        seat,
        clock,
        streams: HashMap::new(),
        encoder: PlanEncoder::default(),
        pushes: Pushes::default(),
    };
    thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(driver.run(inputs)))?;
    Ok(Handle { inputs: inbox, streams: Arc::default() })
}

struct Stream {
    child: ChildId,
    plans: PlanBox,
    /// It said what made no sense or was implausible, and the log says so.
    doubted: bool,
}

struct Driver<S: Seat> {
    seat: S,
    clock: Clock,
    streams: HashMap<StreamId, Stream>,
    encoder: PlanEncoder,
    pushes: Pushes,
}

/// Who may have something to hear, and from when on there may be a push.
#[derive(Default)]
struct Pushes {
    /// Streams that said something since the last push, or had no room then.
    stirred: Vec<StreamId>,
    /// Something came that may concern any of them.
    all: bool,
    /// What all children had been told of.
    revision: u64,
    after: Moment,
}

impl<S: Seat> Driver<S> {
    async fn run(mut self, mut inputs: mpsc::Receiver<Input<S>>) {
        let mut tick = interval(TICK);
        let mut flush = interval(FLUSH);
        // After a pause one tick is enough: nothing is gained by living through the missed ones.
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        flush.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = tick.tick() => self.tick(),
                // What arrives has no effect before the next flush: taken then, a thousand reports wake this thread
                // fifty times, and not a thousand times.
                _ = flush.tick() => match self.take_all(&mut inputs) {
                    ControlFlow::Break(()) => return,
                    ControlFlow::Continue(()) => self.flush(),
                },
            }
        }
    }

    /// Takes what has arrived, but not for long: plans and ticks are due while more of it comes.
    fn take_all(&mut self, inputs: &mut mpsc::Receiver<Input<S>>) -> ControlFlow<()> {
        let began = self.clock.now();
        while self.clock.now().since(began) < TAKING {
            match inputs.try_recv() {
                Ok(Input::Leave(done)) => {
                    self.seat.leave(self.clock.now());
                    let _ = done.send(());
                    return ControlFlow::Break(());
                }
                Ok(input) => self.take(input),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }

    fn take(&mut self, input: Input<S>) {
        let now = self.clock.now();
        match &input {
            Input::Hello { stream, .. } | Input::Report { stream, .. } => self.pushes.stirred.push(*stream),
            Input::Nonsense { .. } | Input::Ask(_) | Input::Leave(_) => {}
            Input::Gone { .. } | Input::Own(_) => self.pushes.all = true,
        }
        match input {
            Input::Hello { stream, hello, plans } => self.hello(stream, hello, plans, now),
            Input::Report { stream, report, refused } => self.report(stream, &report, refused, now),
            Input::Nonsense { stream, cause } => {
                self.doubt(stream, Doubts { refused: 1, clipped: 0 }, &cause);
            }
            Input::Gone { stream } => {
                if let Some(gone) = self.streams.remove(&stream) {
                    self.seat.node_mut().detach(gone.child, now);
                }
            }
            Input::Own(event) => self.seat.take(event, now),
            Input::Ask(question) => question(&self.seat, now),
            Input::Leave(_) => {}
        }
    }

    fn hello(&mut self, stream: StreamId, hello: Hello, plans: PlanBox, now: Moment) {
        let (node, zone) = (hello.node.clone(), hello.zone.clone());
        let attachment = self.seat.node_mut().attach(hello, now);
        if attachment.twin {
            tracing::warn!(child = node, zone, "another live child has this id: give each node its own --id");
        }
        tracing::info!(child = node, zone, "child attached");
        self.streams.insert(stream, Stream { child: attachment.child, plans, doubted: false });
    }

    fn report(&mut self, stream: StreamId, report: &Report, refused: u32, now: Moment) {
        let Some(child) = self.streams.get(&stream).map(|stream| stream.child) else { return };
        let received = self.seat.node_mut().report(child, report, now);
        let doubts = Doubts {
            refused: u64::from(refused) + u64::from(received.refused),
            clipped: u64::from(received.clipped),
        };
        if doubts != Doubts::default() {
            let cause = format!(
                "{} entries refused, {} clipped to what is plausible",
                doubts.refused, doubts.clipped
            );
            self.doubt(stream, doubts, &cause);
        }
    }

    /// Counts what a child said that cannot be, and names the child once.
    fn doubt(&mut self, stream: StreamId, doubts: Doubts, cause: &str) {
        let Some(stream) = self.streams.get_mut(&stream) else { return };
        let all = self.seat.doubts_mut();
        all.refused += doubts.refused;
        all.clipped += doubts.clipped;
        if !std::mem::replace(&mut stream.doubted, true) {
            let children = self.seat.node().children();
            let child = children.get(stream.child).map_or("", |child| &child.hello.node);
            tracing::warn!(child, cause, "a child says what cannot be; more of it is only counted");
        }
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        self.seat.tick(now);
        let all = self.streams.keys().copied().collect();
        self.push(all, now, |seat, child| seat.node().owes_heartbeat(child, now));
    }

    fn flush(&mut self) {
        let now = self.clock.now();
        self.seat.speak(now);
        if now < self.pushes.after {
            return;
        }
        let revision = self.seat.node().children().revision();
        let all = std::mem::take(&mut self.pushes.all)
            || std::mem::replace(&mut self.pushes.revision, revision) != revision;
        let mut stirred = std::mem::take(&mut self.pushes.stirred);
        // A child that reports and has no room is there once for each report.
        stirred.sort_unstable();
        stirred.dedup();
        let streams = if all { self.streams.keys().copied().collect() } else { stirred };
        self.push(streams, now, |_, _| false);
    }

    /// Sends plans to those of these children that have news to hear, or are `owed` one, and have room for it; the others get theirs with
    /// a later push.
    fn push(&mut self, streams: Vec<StreamId>, now: Moment, owed: impl Fn(&S, ChildId) -> bool) {
        let mut told = 0;
        for id in streams {
            let Some(stream) = self.streams.get(&id) else { continue };
            let has_news = self.seat.node().has_news_for(stream.child);
            if !has_news && !owed(&self.seat, stream.child) {
                continue;
            }
            if !stream.plans.has_room() {
                self.pushes.stirred.push(id);
            } else if let Some(plan) = self.seat.node_mut().plan_for(stream.child, now) {
                stream.plans.put(plan, &mut self.encoder);
                told += u32::from(has_news);
            }
        }
        self.pushes.after = self.pushes.after.max(now) + REST * told;
    }
}
