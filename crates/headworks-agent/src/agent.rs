//! The agent in a process: the core's state machine, fed by the limiter's counts and an uplink's plans.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent as State, Identity};
use headworks_core::ladder::PlanState;
use headworks_core::limits::LimitSet;
use headworks_core::message::{BucketNumber, Incarnation};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::limiter::{Limiter, LinkStats};
use crate::records::Records;
use crate::state::Keeper;
use crate::tls::Tls;
use crate::uplink::{self, Dialer, Event, Outbox, Parents, Stay};

/// How often counts are looked at; also the least time between two early reports.
const BEAT: Duration = Duration::from_millis(50);
/// How long the last ratios stay when nothing is heard, unless told otherwise.
pub const HOLD: Duration = Duration::from_secs(60);

/// Settings of an agent that is about to start.
#[derive(Clone, Debug)]
pub struct Builder {
    identity: Identity,
    aggregators: Vec<String>,
    stay: Stay,
    hold: Duration,
    state_dir: Option<PathBuf>,
    tls: Option<Tls>,
    standalone: Option<Standalone>,
}

/// The limits of an agent without a control plane, and how many sets of them there have been.
pub type Standalone = watch::Receiver<(u64, Arc<LimitSet>)>;

impl Builder {
    /// Limits that come from the agent's own process, in the place of aggregators. They should be exact: nobody computes
    /// drop ratios for the others, and everything passes them but bans.
    #[must_use]
    pub fn standalone(mut self, limits: Standalone) -> Self {
        self.standalone = Some(limits);
        self
    }

    /// The aggregators of the agent's zone, as `http://host:port` or `https://host:port`; it attaches to one of them at a time. A host that is a
    /// name with several addresses stands for several aggregators.
    #[must_use]
    pub fn aggregators<S: Into<String>>(mut self, addresses: impl IntoIterator<Item = S>) -> Self {
        self.aggregators = addresses.into_iter().map(Into::into).collect();
        self
    }

    /// The region of the agent's zone.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.identity.region = region.into();
        self
    }

    /// How long the last ratios stay when nothing is heard from above, where a limit does not say; 60 s by default.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// How long it stays with one aggregator before it tries a better one, and on one stream.
    #[must_use]
    pub fn stay(mut self, stay: Stay) -> Self {
        self.stay = stay;
        self
    }

    /// Credentials for aggregators at `https://` addresses. The agent follows their files while it runs.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// A directory in which limits and headrooms are kept, so that the next process starts from them when no aggregator
    /// answers. Agents may share one: each has a file named after its node, so the name should survive a restart.
    #[must_use]
    pub fn state_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(directory.into());
        self
    }

    /// The agent, with the limits in force that an earlier process kept in the state directory. Nothing runs until
    /// [`Agent::run`].
    pub fn build(self) -> Agent {
        let clock = Clock::new();
        let node = self.identity.node.clone();
        let keeper = self.state_dir.map(|directory| Keeper::new(&directory, &node));
        let mut agent = Agent {
            state: State::new(self.identity, self.hold, clock.now()),
            limiter: Limiter::new(clock),
            clock,
            parents: Parents {
                node,
                urls: self.aggregators,
                stay: self.stay,
                dialer: Dialer::of_agent(self.tls.clone()),
            },
            tls: self.tls,
            keeper,
            standalone: self.standalone,
            records: Records::default(),
            placed: Vec::new(),
            outbox: None,
            told: PlanState::None,
            shadow_all: false,
            refused: 0,
        };
        agent.take_over();
        agent.take_own();
        agent
    }
}

/// An agent: a [`Limiter`] for the request path, and the task that keeps it current.
#[derive(Debug)]
pub struct Agent {
    state: State,
    limiter: Limiter,
    clock: Clock,
    parents: Parents,
    tls: Option<Tls>,
    keeper: Option<Keeper>,
    standalone: Option<Standalone>,
    records: Records,
    /// Buckets that have a place at the parents since the last pass.
    placed: Vec<BucketNumber>,
    outbox: Option<Outbox>,
    told: PlanState,
    shadow_all: bool,
    refused: u64,
}

impl Agent {
    /// An agent by its name, unique in the fleet, and its zone.
    pub fn builder(node: impl Into<String>, zone: impl Into<String>) -> Builder {
        let identity = Identity {
            node: node.into(),
            incarnation: draw_incarnation(),
            zone: zone.into(),
            region: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Builder {
            identity,
            aggregators: Vec::new(),
            stay: Stay::default(),
            hold: HOLD,
            state_dir: None,
            tls: None,
            standalone: None,
        }
    }

    /// What decides requests. Works before, during and after [`Agent::run`].
    pub fn limiter(&self) -> Limiter {
        self.limiter.clone()
    }

    /// Keeps the limiter current until `shutdown`; then sends a last report, says goodbye, and returns.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let (events, mut inbox) = mpsc::channel(64);
        let streams = TaskTracker::new();
        if let Some(tls) = self.tls.clone() {
            streams.spawn(tls.watch(shutdown.clone()));
        }
        if !self.parents.urls.is_empty() {
            streams.spawn(uplink::keep_attached(0, self.parents.clone(), events, shutdown.clone()));
        }
        let spent = self.limiter.clone();
        let mut own = self.standalone.clone();
        let mut beat = interval(BEAT);
        // After a pause one beat is enough: a burst of missed ones would be a burst of reports.
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(event) = inbox.recv() => self.take(event),
                () = spent.spent() => {}
                () = changed(&mut own) => self.take_own(),
                _ = beat.tick() => {
                    spent.rest();
                    spent.sweep();
                }
            }
            self.beat();
            self.keep();
        }
        self.leave();
        streams.close();
        tokio::join!(uplink::drain(&mut inbox, &streams), self.close_state());
    }

    /// Starts from what an earlier process kept. One pass puts it in force, before the first request.
    fn take_over(&mut self) {
        if let Some(kept) = self.keeper.as_ref().and_then(Keeper::read) {
            self.state.restore(kept, self.clock.now());
            self.limiter.install(self.state.limits_here());
            self.beat();
        }
    }

    /// Puts the limits of the agent's own process in force.
    fn take_own(&mut self) {
        if let Some(own) = &mut self.standalone {
            let limits = own.borrow_and_update().1.clone();
            tracing::info!(limits = limits.limits().len(), digest = %limits.digest(), "limits in force");
            self.limiter.install(&limits.in_zone(self.state.zone()));
            self.tell_state();
        }
    }

    async fn close_state(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.close(&self.state, self.clock.now()).await;
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Greet { outbox, .. } => outbox.hello(&self.state.hello()),
            Event::Attached { parent, outbox, .. } => {
                if let Some(left) = self.outbox.take() {
                    self.read_counts();
                    left.report(&self.state.parting_report(self.clock.now()));
                    left.goodbye();
                }
                self.state.attached(parent);
                self.outbox = Some(outbox);
            }
            Event::Plan { plan, refused, .. } => {
                let now = self.clock.now();
                let effects = self.state.plan(plan, now);
                self.refused += u64::from(refused) + u64::from(effects.unknown);
                self.follow_switch();
                self.records.turn_away(&effects.untracked, &self.limiter, now);
                self.placed.extend(effects.placed);
                if let Some(limits) = effects.limits {
                    tracing::info!(limits = limits.limits().len(), digest = %self.state.limits().digest(), "limits in force");
                    let exact = limits.limits().iter().any(|limit| limit.exact().is_some());
                    if exact && self.limiter.counts_alone() {
                        tracing::warn!(
                            "exact limits are counted by each agent for itself: the fleet may pass as often as much"
                        );
                    }
                    self.limiter.install(&limits);
                }
            }
            Event::Detached { .. } => {
                self.outbox = None;
                self.state.detached();
            }
        }
    }

    fn follow_switch(&mut self) {
        let shadow_all = self.state.shadow_all();
        if std::mem::replace(&mut self.shadow_all, shadow_all) != shadow_all {
            self.limiter.set_shadow_all(shadow_all);
            log_shadow_all(shadow_all);
        }
    }

    /// One pass: counts in, report out, headrooms in force.
    fn beat(&mut self) {
        let now = self.clock.now();
        self.read_counts();
        if let Some(outbox) = &self.outbox
            && outbox.has_room()
            && let Some(report) = self.state.report(now)
        {
            outbox.report(&report);
        }
        for (number, in_force) in self.state.changes(now) {
            self.records.set(number, in_force, now);
        }
        // Not before their headrooms are in force.
        self.records.place(&std::mem::take(&mut self.placed), &self.limiter);
        self.records.forget_idle(&mut self.state, &self.limiter, now);
        self.tell_state();
    }

    /// Keeps the state on disk, where a directory was given. Not a part of each pass: the first one comes before there is
    /// a runtime to write on.
    fn keep(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.tend(&self.state, self.clock.now());
        }
    }

    fn read_counts(&mut self) {
        let now = self.clock.now();
        self.records.drop_retired();
        for record in self.limiter.take_opened() {
            if let Some(number) = record.key().and_then(|key| self.state.open(&key, now)) {
                self.records.insert(number, record);
            }
        }
        let state = &mut self.state;
        self.records.read(&self.limiter, now, |number, counts| state.count(number, counts, now));
    }

    /// Shows the state of the link, and logs each change of it once.
    fn tell_state(&mut self) {
        if let Some(own) = &self.standalone {
            let (generation, limits) = own.borrow().clone();
            self.limiter.set_link(LinkStats::standalone(generation, limits.digest()));
            return;
        }
        let now = self.clock.now();
        let state = self.state.plan_state(now);
        let plan = self.state.link().plan();
        if state != self.told {
            log_plan_state(state, plan.map(|plan| plan.age(now)));
            self.told = state;
        }
        self.limiter.set_link(LinkStats {
            state,
            age: plan.map(|plan| plan.age(now)),
            parent: self.state.parent().map(str::to_owned),
            digest: plan.map(|_| self.state.limits().digest()),
            generation: plan.map_or(0, |plan| plan.generation),
            refused_entries: self.refused,
            state_write_errors: self.keeper.as_ref().map_or(0, Keeper::errors),
        });
    }

    fn leave(&mut self) {
        self.read_counts();
        let report = self.state.full_report(self.clock.now());
        if let Some(outbox) = self.outbox.take() {
            outbox.report(&report);
            outbox.goodbye();
        }
    }
}

/// Waits for other limits of the process's own, for ever where there are none to come.
async fn changed(own: &mut Option<Standalone>) {
    if let Some(own) = own
        && own.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Logs a change of what the plan in hand is worth, in the words that operators look for.
pub fn log_plan_state(state: PlanState, age: Option<Duration>) {
    let age = age.unwrap_or_default();
    match state {
        PlanState::None => {}
        PlanState::Fresh => tracing::info!("plan is fresh: limits follow the fleet"),
        PlanState::Alone => tracing::warn!(?age, "plan is old: the last drop ratios stay for the hold"),
        PlanState::Open => tracing::warn!(?age, "hold is over: failing open, nothing is dropped but bans"),
    }
}

/// Logs that the fleet's switch was thrown, in the words that operators look for.
pub fn log_shadow_all(shadow_all: bool) {
    if shadow_all {
        tracing::warn!("shadow-all is on: every limit counts what it would drop, nothing is dropped");
    } else {
        tracing::info!("shadow-all is off: every limit is in its own mode again");
    }
}

/// An incarnation that no earlier or other life has: a random number, never 0.
pub fn draw_incarnation() -> Incarnation {
    Incarnation(fastrand::u64(1..))
}
