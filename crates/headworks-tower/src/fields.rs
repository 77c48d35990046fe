//! `RateLimit-Policy` and `RateLimit`, of draft-ietf-httpapi-ratelimit-headers-10.

use std::time::Duration;

use headworks_agent::told::{Basis, Told};
use headworks_agent::{Limiter, Verdict};
use headworks_core::units::Rate;
use http::{HeaderMap, HeaderName, HeaderValue};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// The largest Integer of a structured field (RFC 9651, 3.3.1).
const LARGEST: u64 = 999_999_999_999_999;

/// What is told beside a response of the limit that a verdict rests on.
#[derive(Debug)]
pub(crate) struct Fields {
    policy: HeaderValue,
    limit: Option<HeaderValue>,
}

impl Fields {
    /// Of a request that passes. What remains is told of counts alone: an estimate for a whole fleet is no promise to one client.
    pub(crate) fn of(limiter: &Limiter, verdict: &Verdict) -> Option<Self> {
        let limit = limiter.limit(verdict.limit()?)?;
        let told = Told::of(verdict, &limit, None)?;
        let remaining = told.remaining.filter(|_| told.basis == Basis::Counted);
        Self::new(&limit.name, &told, remaining, None)
    }

    /// Of a refusal that tells to come back after so many seconds. The two never contradict each other.
    pub(crate) fn of_refusal(name: &str, told: &Told, retry_after: Option<u64>) -> Option<Self> {
        Self::new(name, told, Some(0), retry_after)
    }

    fn new(name: &str, told: &Told, remaining: Option<u64>, reset: Option<u64>) -> Option<Self> {
        let quota = told.limit?;
        // Names of limits have no quotes.
        let mut policy = format!("\"{name}\";q={}", quota.min(LARGEST));
        if let Some(window) = window(quota, told.rate) {
            policy += &format!(";w={window}");
        }
        let limit = remaining.map(|remaining| match reset {
            Some(reset) => format!("\"{name}\";r={};t={}", remaining.min(LARGEST), reset.min(LARGEST)),
            None => format!("\"{name}\";r={}", remaining.min(LARGEST)),
        });
        let limit = limit.and_then(|limit| limit.try_into().ok());
        Some(Self { policy: policy.try_into().ok()?, limit })
    }

    pub(crate) fn put_into(self, headers: &mut HeaderMap) {
        // A service may have told of limits of its own.
        headers.append(POLICY, self.policy);
        if let Some(limit) = self.limit {
            headers.append(LIMIT, limit);
        }
    }
}

/// The whole seconds in which the rate gives the quota: the unit of the rate, or how long a burst takes to come back. None for
/// a ban.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and rates are above 0"
)]
fn window(quota: u64, rate: Rate) -> Option<u64> {
    let Rate::Per { amount, unit } = rate else { return None };
    let unit: Duration = unit.duration();
    (amount > 0).then(|| (quota as f64 / amount as f64 * unit.as_secs_f64()).ceil().max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use headworks_core::units::Unit;

    use super::*;

    fn fields(
        amount: u64,
        unit: Unit,
        quota: u64,
        left: Option<u64>,
        reset: Option<u64>,
    ) -> [Option<String>; 2] {
        let rate = Rate::Per { amount, unit };
        let told = Told {
            allowed: reset.is_none(),
            limit: Some(quota),
            remaining: left,
            rate,
            basis: Basis::Counted,
            wait: None,
        };
        let mut headers = HeaderMap::new();
        Fields::new("per-tenant", &told, left, reset).unwrap().put_into(&mut headers);
        [POLICY, LIMIT].map(|name| headers.get(name).map(|value| value.to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_policy_is_a_quota_in_a_window_and_a_limit_what_remains() {
        let [policy, limit] = fields(60, Unit::Minute, 60, Some(7), None);
        assert_eq!(policy.as_deref(), Some("\"per-tenant\";q=60;w=60"));
        assert_eq!(limit.as_deref(), Some("\"per-tenant\";r=7"));
    }

    #[test]
    fn a_burst_has_the_window_in_which_it_comes_back() {
        assert_eq!(
            fields(100, Unit::Second, 250, None, None),
            [Some("\"per-tenant\";q=250;w=3".to_owned()), None]
        );
    }

    #[test]
    fn a_refusal_says_when() {
        assert_eq!(
            fields(5, Unit::Second, 5, Some(0), Some(1))[1].as_deref(),
            Some("\"per-tenant\";r=0;t=1")
        );
        let ban = fields(0, Unit::Second, 0, Some(0), None);
        assert_eq!(ban, [Some("\"per-tenant\";q=0".to_owned()), Some("\"per-tenant\";r=0".to_owned())]);
    }

    #[test]
    fn no_number_is_longer_than_a_structured_field_may_hold() {
        let [policy, limit] = fields(u64::MAX, Unit::Second, u64::MAX, Some(u64::MAX), None);
        assert_eq!(policy.as_deref(), Some("\"per-tenant\";q=999999999999999;w=1"));
        assert_eq!(limit.as_deref(), Some("\"per-tenant\";r=999999999999999"));
    }
}
