//! What clients are told of a limit: what it has left, and when to ask again.
//!
//! Everything that answers clients takes its numbers from here, so that they hear the same wherever they ask. Pure: what is drawn
//! by chance is passed in.

use std::time::Duration;

use headworks_core::limits::Limit;
use headworks_core::units::{Headroom, Rate};

use crate::{Remaining, Standing, Verdict};

/// The control plane hears of less demand once a second; who asks sooner only adds to what is refused.
const LEAST_BY_RATIO: Duration = Duration::from_secs(1);
/// A refused client comes back at a random moment after the wait, within this part of it ...
const SPREAD_OF_WAIT: u32 = 4;
/// ... or while the rate gives so many units, up to so long, if that is longer.
const SPREAD_IN_UNITS: u32 = 4;
const LONGEST_SPREAD_IN_UNITS: Duration = Duration::from_secs(5);

/// The numbers of the limit that a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// Whether the request passed.
    pub allowed: bool,
    /// Most that passes, in cost units: of an exact limit at one moment, of another in the unit of its rate. `None` for one that is
    /// unlimited.
    pub limit: Option<u64>,
    /// What is left of it; `None` for one that is unlimited.
    pub remaining: Option<u64>,
    /// How much passes of the bucket that the request met.
    pub rate: Rate,
    /// What the numbers are worth.
    pub basis: Basis,
    /// When to ask again; `None` if the request passed, or if no wait ends the refusal, as with a ban.
    pub wait: Option<Wait>,
}

/// What the numbers are worth to one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// An estimate for the whole fleet, which is no promise to one client: drop ratios fall on all alike.
    Estimated,
    /// Requests are counted one by one: what remains will pass.
    Counted,
    /// The store that counts did not answer, and the limit says what that means.
    Uncounted,
}

impl Told {
    /// What is told of `limit`, on which `verdict` rests, to a request of this cost, or of the limit's own. `None` if it rests on no
    /// limit.
    pub fn of(verdict: &Verdict, limit: &Limit, asked: Option<u32>) -> Option<Self> {
        let (standing, allowed) = (verdict.decisive?.standing, verdict.allowed);
        Some(match standing {
            Standing::Headroom(headroom) => Self::by_ratio(allowed, limit, headroom, asked),
            Standing::Exact(remaining) => Self::counted(allowed, remaining, Basis::Counted),
            Standing::Uncounted(remaining) => Self::counted(allowed, remaining, Basis::Uncounted),
        })
    }

    fn by_ratio(allowed: bool, limit: &Limit, headroom: Headroom, asked: Option<u32>) -> Self {
        let (rate, cost) = (limit.rate, u64::from(asked.unwrap_or(limit.cost)));
        // A refusal says that nothing remains, also where the surge guard refused while the fleet has room.
        let (remaining, wait) =
            if allowed { (left(limit, headroom), None) } else { (Some(0), wait_by_ratio(rate, cost)) };
        Self { allowed, limit: rate.per_unit(), remaining, rate, basis: Basis::Estimated, wait }
    }

    /// What is told of a bucket whose requests are counted one by one.
    pub fn counted(allowed: bool, of: Remaining, basis: Basis) -> Self {
        let wait = of.retry_after.filter(|_| !allowed).map(|wait| Wait::at_least(wait, of.rate));
        Self { allowed, limit: of.limit, remaining: of.remaining, rate: of.rate, basis, wait }
    }

    /// The headers of an answer, whose values are whole numbers: what is left of how much, and how many seconds to wait. An estimate
    /// for a whole fleet is no promise to one client, so an admission by one tells nothing. `draw`, from 0 up to 1, is for
    /// [`Wait::retry_after`].
    pub fn headers(&self, draw: f64) -> impl Iterator<Item = (&'static str, u64)> {
        let tells = !self.allowed || self.basis == Basis::Counted;
        let of = |number: Option<u64>| number.filter(|_| tells);
        let all = [
            ("x-ratelimit-remaining", of(self.remaining)),
            ("x-ratelimit-limit", of(self.limit)),
            ("retry-after", self.wait.map(|wait| wait.retry_after(draw))),
        ];
        all.into_iter().filter_map(|(name, number)| Some((name, number?)))
    }

    /// Seconds in which the rate gives back what is taken, rounded up, and at most the unit of the rate; `None` where there is nothing
    /// that could be taken.
    pub fn reset(&self) -> Option<u64> {
        let Rate::Per { unit, .. } = self.rate else { return None };
        let taken = self.limit?.saturating_sub(self.remaining?);
        let whole = pass(self.rate)?.saturating_mul(u32::try_from(taken).unwrap_or(u32::MAX));
        Some(whole_seconds(whole.min(unit.duration())))
    }
}

/// What a limit has left in the whole fleet at the present demand, in cost units; 0 for h ≤ 1.
fn left(limit: &Limit, headroom: Headroom) -> Option<u64> {
    let amount = limit.rate.per_unit()?;
    Some(match limit.budget() {
        _ if headroom.value() <= 1.0 => 0,
        // The headroom of a budget is (saved + a minute's worth) / offered in the last minute, and one number
        // does not tell the two apart. What is saved is at most the budget, so this is an upper bound.
        Some(budget) => budget,
        None => left_this_second(amount, headroom),
    })
}

/// `limit · (1 − 1/h)`, rounded down. Demand is `limit / h`, so this is limit minus demand.
#[allow(clippy::cast_possible_truncation, reason = "what is left is neither below 0 nor above the limit")]
fn left_this_second(amount: u64, headroom: Headroom) -> u64 {
    // Demand often is a whole number; a last bit lost on the way through h must not cost one.
    const ROUNDING: f64 = 1e-6;
    let limit = amount as f64;
    let left = limit - limit / headroom.value();
    ((left + ROUNDING) as u64).min(amount)
}

/// The time in which the rate gives what the request costs, from a second to the unit of the rate.
fn wait_by_ratio(rate: Rate, cost: u64) -> Option<Wait> {
    let Rate::Per { unit, .. } = rate else { return None };
    let wait = pass(rate)?.saturating_mul(u32::try_from(cost).unwrap_or(u32::MAX));
    Some(Wait::at_least(wait.clamp(LEAST_BY_RATIO, unit.duration()), rate))
}

/// The time in which a rate gives one unit; `None` where it gives none, or any number.
fn pass(rate: Rate) -> Option<Duration> {
    let Rate::Per { amount, unit } = rate else { return None };
    let nanoseconds = unit.duration().as_nanos().checked_div(u128::from(amount))?;
    Some(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
}

/// When a refused client does well to ask again.
///
/// Clients that are refused together and wait equally long come back together, and all but the first few are refused again.
/// So each is told a moment of its own, drawn between the least wait and somewhat more: a quarter of it, or the time in which the
/// rate gives four units, up to five seconds. Never less than the least wait: a client that waits as long as it is told is not early. And never more
/// than the unit of the rate, unless the least wait itself is longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    least: Duration,
    most: Duration,
}

impl Wait {
    fn at_least(least: Duration, rate: Rate) -> Self {
        let units =
            pass(rate).unwrap_or_default().saturating_mul(SPREAD_IN_UNITS).min(LONGEST_SPREAD_IN_UNITS);
        let spread = (least / SPREAD_OF_WAIT).max(units);
        let unit = match rate {
            Rate::Per { unit, .. } => unit.duration(),
            Rate::Unlimited => Duration::ZERO,
        };
        Self { least, most: least.saturating_add(spread).min(unit).max(least) }
    }

    /// After so long the same request may pass.
    pub fn least(self) -> Duration {
        self.least
    }

    /// The same in whole milliseconds, rounded up: who comes a part of one too early is refused again.
    pub fn least_ms(self) -> u64 {
        u64::try_from(self.least.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The moment of one client among many, by a draw from 0 up to 1.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and nothing drawn is below 0"
    )]
    pub fn spread(self, draw: f64) -> Duration {
        let more = (self.most - self.least).as_nanos() as f64 * draw;
        self.least.saturating_add(Duration::from_nanos(more as u64)).min(self.most)
    }

    /// The same as the whole seconds of a `Retry-After` (RFC 9110, delay-seconds): rounded up, and at least 1, since 0 invites a
    /// busy loop.
    pub fn retry_after(self, draw: f64) -> u64 {
        whole_seconds(self.spread(draw)).max(1)
    }
}

fn whole_seconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
