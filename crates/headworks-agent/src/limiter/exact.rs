//! The exact limits of the pipeline: which of them a request meets, and the verdict that their outcomes make.

use headworks_core::limits::Mode;
use headworks_core::matching::Meeting;
use headworks_core::units::Moment;
use smallvec::SmallVec;

use super::Request;
use super::rules::Rules;
use super::verdict::{Decisive, LimitRef, Standing, Unanswerable, Verdict, Which};
use crate::exact::{self, Ask, Asks, ExactLimit, Outcome, Settled, settle, settle_one, settle_one_value};

/// What the exact limits say.
#[derive(Debug)]
pub(super) enum Decided {
    /// It costs more than the limit at this place ever passes at once.
    NeverPasses { place: u32, cost: u64, most: u64 },
    /// Whether it passes, and by which of them, unless by none that is enforced.
    By(bool, Option<(u32, Standing)>),
}

impl Decided {
    pub(super) fn allows(&self) -> bool {
        matches!(self, Self::By(true, _))
    }

    /// The verdict, by the rules of this generation.
    #[inline]
    pub(super) fn verdict(self, generation: u64) -> Verdict {
        match self {
            Self::NeverPasses { place, cost, most } => {
                let limit = LimitRef { generation, which: Which::new(place, 0) };
                let why = Unanswerable::NeverPasses { limit, cost, most };
                Verdict { unanswerable: Some(why), ..Verdict::of(false, None) }
            }
            Self::By(allowed, None) => Verdict::of(allowed, None),
            Self::By(allowed, Some((place, standing))) => {
                Verdict::exact(allowed, generation, place, standing)
            }
        }
    }
}

impl Verdict {
    /// By the limit at a place of the rules.
    #[inline(always)]
    fn exact(allowed: bool, generation: u64, place: u32, standing: Standing) -> Self {
        let limit = LimitRef { generation, which: Which::new(place, 0) };
        Self::of(allowed, Some(Decisive { limit, standing }))
    }
}

/// The verdict on a request that meets exact limits alone.
#[inline]
pub(super) fn check(rules: &Rules, request: Request<'_>, now: impl Fn() -> Moment) -> Verdict {
    if let Some(met) = only(rules, &request) {
        let (ask, place) = (met.ask(request), met.place);
        let enforced = ask.enforced;
        // Made of what is in registers: any value between this and the verdict would be copied twice.
        match settle_one_value(&ask, now()) {
            Some((passes, told)) if enforced => {
                return Verdict::exact(passes, rules.generation, place, Standing::Exact(told));
            }
            Some(_) => return Verdict::of(true, None),
            None => {}
        }
    }
    check_closer(rules, request, now())
}

#[inline(never)]
fn check_closer(rules: &Rules, request: Request<'_>, now: Moment) -> Verdict {
    match decide(rules, request, || now) {
        Some(decided) => decided.verdict(rules.generation),
        None if request.only_looks() => Verdict::NOTHING_TO_SEE,
        None => Verdict::of(true, None),
    }
}

/// What the exact limits say to a request, unless it meets none.
pub(super) fn decide(rules: &Rules, request: Request<'_>, now: impl FnOnce() -> Moment) -> Option<Decided> {
    let met: MetAll<'_> = all(rules, &request).collect();
    match *met {
        [] => None,
        [only] => {
            let now = now();
            Some(decide_one(only, request, now).unwrap_or_else(|| decide_all(&met, request, now)))
        }
        _ => Some(decide_all(&met, request, now())),
    }
}

/// Gives back what a request was charged by the exact limits that it meets.
pub(super) fn give_back(rules: &Rules, request: Request<'_>, now: Moment) {
    // One that is in shadow and full charges nothing, and which one was is not known any more: what is given back would be another's.
    for met in all(rules, &request).filter(|met| met.first.is_some() && request.enforces(met.mode)) {
        exact::give_back(&met.ask(request), now);
    }
}

/// Few requests meet more than two.
pub(super) type MetAll<'a> = SmallVec<[Met<'a>; 4]>;

/// The limits that a request meets, in pipeline order.
#[inline]
pub(super) fn all<'a>(rules: &'a Rules, request: &'a Request<'a>) -> impl Iterator<Item = Met<'a>> {
    rules.exact_for(request.attributes).filter_map(move |(place, exact)| Met::of(exact, place, request))
}

/// The limit that a request meets, if it meets one and no other, and there are but few.
#[inline]
fn only<'a>(rules: &'a Rules, request: &Request<'a>) -> Option<Met<'a>> {
    let mut only = None;
    // A loop, since the closures of iterators are not inlined here; and no index, which takes as long as a walk over few.
    for (exact, place) in rules.few_exact()?.iter().zip(rules.first_exact()..) {
        if let Some(met) = Met::of(exact, place, request) {
            if only.is_some() {
                return None;
            }
            only = Some(met);
        }
    }
    only
}

/// A limit that concerns a request.
#[derive(Clone, Copy)]
pub(super) struct Met<'a> {
    exact: &'a ExactLimit,
    /// Its place in the rules.
    place: u32,
    /// The first value of its bucket, unless the request lacks one.
    first: Option<&'a str>,
    mode: Mode,
}

impl<'a> Met<'a> {
    #[inline(always)]
    fn of(exact: &'a ExactLimit, place: u32, request: &Request<'a>) -> Option<Self> {
        let (first, mode) = match exact.limit().meeting(request.attributes) {
            Meeting::Unconcerned => return None,
            Meeting::Counted(first) => (Some(first), exact.mode(request.attributes)),
            // It has no bucket that an override might be for.
            Meeting::DroppedForMissing => (None, exact.limit().mode),
        };
        (mode != Mode::Off).then_some(Self { exact, place, first, mode })
    }

    #[inline]
    pub(super) fn ask(self, request: Request<'a>) -> Ask<'a> {
        let limit = self.exact.limit();
        let charge = request.cost(limit);
        Ask {
            limit: self.exact,
            attributes: request.attributes,
            first: self.first.unwrap_or_default(),
            lacks_value: self.first.is_none(),
            cost: if request.only_looks() { limit.cost.into() } else { charge },
            charge,
            enforced: request.enforces(self.mode),
            asked: request.asked.is_some() && !request.only_looks(),
        }
    }
}

/// What the only limit that a request meets says, if one look at it suffices.
fn decide_one(met: Met<'_>, request: Request<'_>, now: Moment) -> Option<Decided> {
    let ask = met.ask(request);
    let (passes, told) = settle_one(&ask, now)?;
    let decisive = (met.place, Standing::Exact(told));
    Some(if ask.enforced { Decided::By(passes, Some(decisive)) } else { Decided::By(true, None) })
}

#[inline(never)]
fn decide_all(met: &[Met<'_>], request: Request<'_>, now: Moment) -> Decided {
    let asks: Asks<'_> = met.iter().map(|met| met.ask(request)).collect();
    let (settled, outcomes) = settle(&asks, now);
    decided(settled, met, &asks, &outcomes)
}

/// What becomes of a request by what each limit that it meets says.
pub(super) fn decided(settled: Settled, met: &[Met<'_>], asks: &[Ask<'_>], outcomes: &[Outcome]) -> Decided {
    let enforced = || outcomes.iter().enumerate().filter(|(at, _)| asks[*at].enforced);
    match settled {
        Settled::NeverPasses { place, most } => {
            Decided::NeverPasses { place: met[place].place, cost: asks[place].cost, most }
        }
        Settled::Refused(at) => {
            // Whoever waits as long as is told should pass them all.
            let refused = enforced().filter(|(_, outcome)| !outcome.passes);
            let mut by = outcomes[at];
            by.told.retry_after = longest(refused.map(|(_, outcome)| outcome.told.retry_after));
            Decided::By(false, Some((met[at].place, standing(&by))))
        }
        Settled::Passes => {
            let least = enforced().min_by_key(|(_, outcome)| outcome.told.remaining.unwrap_or(u64::MAX));
            Decided::By(true, least.map(|(at, outcome)| (met[at].place, standing(outcome))))
        }
    }
}

fn standing(outcome: &Outcome) -> Standing {
    if outcome.counted { Standing::Exact(outcome.told) } else { Standing::Uncounted(outcome.told) }
}

/// The longest of some waits; none if one of them never ends.
fn longest(waits: impl Iterator<Item = Option<std::time::Duration>>) -> Option<std::time::Duration> {
    waits.reduce(|a, b| Some(a?.max(b?))).flatten()
}
