//! A store that many agents share: exact limits counted in Redis or Valkey.
//!
//! A request costs one call of one script, which checks all its buckets and charges all or none ([`script`]); none where
//! the agent knows the answer: that a bucket is spent until some moment ([`denied`]), that a cost never passes. A call
//! that takes longer than the deadline, or finds the store away ([`link`]), leaves the answer to the limits' `on_store_failure`.
//!
//! All keys of a store begin with its prefix in braces, so that a cluster keeps them on one node, where one script can see
//! them together. Who wants to spread over a cluster gives parts of the fleet prefixes of their own.

mod denied;
mod link;
mod names;
mod script;

use std::sync::Arc;
use std::time::Duration;

use headworks_core::exact::{Ruling, State};
use headworks_core::limits::StoreFailure;
use headworks_core::units::Moment;
use smallvec::SmallVec;
use tokio::time::{Instant, timeout_at};

use crate::exact::{Ask, Outcome, Outcomes, Remaining, Settled};
use denied::{Denied, Gate, Known};
use link::Link;
pub use link::{StoreError, StoreStats, StoreTls};

/// What a client is told to wait while the store is away.
const AWAY: Duration = Duration::from_secs(1);

/// Where a store is and how it is used.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// `redis://`, `rediss://` or `redis+unix://` addresses of one store, tried in turn: of a server, of its replicas, of the nodes of a
    /// cluster.
    pub urls: Vec<String>,
    /// What all keys begin with, in braces.
    pub prefix: String,
    /// How long an answer may take.
    pub deadline: Duration,
    /// Certificates for `rediss://`; those of the system without.
    pub tls: Option<StoreTls>,
}

/// Exact limits counted in one place for many agents.
#[derive(Debug)]
pub struct Store {
    link: Link,
    denied: Denied,
    prefix: String,
    deadline: Duration,
}

/// What is known of an ask.
struct Place {
    /// The key of its bucket.
    name: Vec<u8>,
    ruling: Arc<Ruling>,
    known: Option<Outcome>,
    gate: Option<Gate>,
}

impl Store {
    /// A store. Nothing is asked of it until a [`SharedLimiter`](crate::SharedLimiter) runs.
    pub fn new(settings: StoreSettings) -> Result<Self, StoreError> {
        let StoreSettings { urls, prefix, deadline, tls } = settings;
        let link = Link::new(&urls, tls, names::probe(&prefix), deadline)?;
        Ok(Self { link, denied: Denied::default(), prefix, deadline })
    }

    /// Keeps connected, for ever.
    pub(crate) async fn keep(&self) {
        self.link.keep().await;
    }

    /// Waits until the store answers.
    pub(crate) async fn reached(&self) {
        self.link.reached().await;
    }

    /// How it is, and what was asked of it.
    pub(crate) fn stats(&self) -> StoreStats {
        StoreStats { answered_here: self.denied.answered(), ..self.link.stats() }
    }

    /// Forgets what is known of buckets that may have room again.
    pub(crate) fn sweep(&self, now: Moment) {
        self.denied.sweep(now);
    }

    /// Settles a request: what each limit says, and what becomes of it.
    pub(crate) async fn settle(&self, asks: &[Ask<'_>], now: impl Fn() -> Moment) -> (Settled, Outcomes) {
        let mut places: SmallVec<[Place; 4]> = asks.iter().map(|ask| self.place(ask, now())).collect();
        if !is_settled(asks, &places) {
            let deadline = Instant::now() + self.deadline;
            if timeout_at(deadline, self.ask(asks, &mut places, now)).await.is_err() {
                self.link.missed();
            }
        }
        let outcomes = outcomes(asks, &places);
        (Settled::of(asks, &outcomes), outcomes)
    }

    /// An ask, with what can be said without the store.
    fn place(&self, ask: &Ask<'_>, now: Moment) -> Place {
        if ask.lacks_value {
            let ruling = ask.limit.rules.own().clone();
            return Place { name: Vec::new(), known: Some(Outcome::of_nothing(&ruling)), ruling, gate: None };
        }
        let values = ask.values();
        let ruling = ask.limit.rules.rule_for(&values).0.clone();
        let name = names::of_bucket(&self.prefix, ask.limit.limit(), &values);
        let known = known_by_rule(ask, &ruling);
        let (known, gate) = match known {
            Some(known) => (Some(known), None),
            None => self.look(&name, &ruling, ask.cost, now),
        };
        Place { name, ruling, known, gate }
    }

    fn look(&self, name: &[u8], ruling: &Ruling, cost: u64, now: Moment) -> (Option<Outcome>, Option<Gate>) {
        match self.denied.look(name, ruling.generation, cost, now) {
            Known::Nothing => (None, None),
            Known::Perhaps(gate) => (None, Some(gate)),
            Known::Denied { left, wait } => (Some(refused(ruling, Some(left), Some(wait))), None),
        }
    }

    /// Asks the store what is not known. Places of which it says nothing stay unknown.
    async fn ask(&self, asks: &[Ask<'_>], places: &mut [Place], now: impl Fn() -> Moment) {
        let mut passing = SmallVec::<[_; 4]>::new();
        // In the order of limits, as everybody does: nobody waits for one that waits for him.
        for (ask, place) in asks.iter().zip(&mut *places) {
            let Some(gate) = place.gate.take() else { continue };
            let inside = gate.pass().await;
            let still;
            (place.known, still) = self.look(&place.name, &place.ruling, ask.cost, now());
            // Whoever finds that there is room need not hold up the others.
            passing.extend(still.map(|_| inside));
        }
        if is_settled(asks, places) {
            return;
        }
        let open: SmallVec<[usize; 4]> =
            (0..places.len()).filter(|place| places[*place].known.is_none()).collect();
        let buckets = open.iter().map(|place| script::Bucket {
            name: &places[*place].name,
            rule: &places[*place].ruling.rule,
            ask: &asks[*place],
        });
        let Some(told) = self.link.check(buckets).await else { return };
        for (place, told) in open.into_iter().zip(told) {
            self.learn(&mut places[place], &asks[place], told, now());
        }
    }

    fn learn(&self, place: &mut Place, ask: &Ask<'_>, told: script::Told, now: Moment) {
        let Place { name, ruling, known, .. } = place;
        self.denied.learn(name, ruling.generation, ask.cost, told.left, told.wait, now);
        *known = Some(if told.passes {
            // What is left is told by itself: other agents may have charged in between.
            let left = Some(told.left);
            Outcome { passes: true, counted: true, told: remaining(ruling, left, None) }
        } else {
            refused(ruling, Some(told.left), Some(told.wait))
        });
    }
}

/// Whether nothing that the store says could change what becomes of the request.
fn is_settled(asks: &[Ask<'_>], places: &[Place]) -> bool {
    let all = || asks.iter().zip(places);
    let refuses =
        |(ask, place): (&Ask<'_>, &Place)| ask.enforced && place.known.is_some_and(|known| !known.passes);
    all().all(|(_, place)| place.known.is_some()) || all().any(refuses)
}

/// The outcomes of what is known, and of the rest: that the store was not asked, since another limit refuses, or did not
/// answer, and the limit says what that means.
fn outcomes(asks: &[Ask<'_>], places: &[Place]) -> Outcomes {
    let was_asked = !is_settled(asks, places);
    let outcome =
        |(ask, place): (&Ask<'_>, &Place)| place.known.unwrap_or_else(|| unknown(ask, place, was_asked));
    asks.iter().zip(places).map(outcome).collect()
}

fn unknown(ask: &Ask<'_>, place: &Place, was_asked: bool) -> Outcome {
    let open = ask.limit.limit().exact().unwrap_or_default().on_store_failure == StoreFailure::Open;
    let passes = open || !was_asked;
    let wait = (!passes).then_some(AWAY);
    Outcome { passes, counted: false, told: remaining(&place.ruling, None, wait) }
}

/// What the rule alone says: of limits that count nothing, and of costs that never pass.
fn known_by_rule(ask: &Ask<'_>, ruling: &Ruling) -> Option<Outcome> {
    if ruling.rule.numbers().is_none() {
        let look = ruling.rule.look(&State::New, ask.cost, Moment::default());
        return Some(Outcome { passes: look.passes, counted: true, told: Remaining::of(&look, ruling, 0) });
    }
    ruling.rule.most().is_some_and(|most| ask.cost > most).then(|| refused(ruling, None, None))
}

fn refused(ruling: &Ruling, left: Option<u64>, wait: Option<Duration>) -> Outcome {
    Outcome { passes: false, counted: true, told: remaining(ruling, left, wait) }
}

fn remaining(ruling: &Ruling, remaining: Option<u64>, retry_after: Option<Duration>) -> Remaining {
    Remaining { rate: ruling.rate, limit: ruling.rule.most(), remaining, retry_after }
}

#[cfg(test)]
mod tests;
