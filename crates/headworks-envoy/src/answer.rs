//! What a refused request is answered.

use headworks_agent::Verdict;
use headworks_agent::told::Told;
use headworks_core::limits::Limit;
use smallvec::SmallVec;

/// The status of every refusal.
pub const TOO_MANY_REQUESTS: u32 = 429;
/// The body of every refusal. Which limit it was is for the access log: clients are strangers.
pub const BODY: &str = "too many requests\n";

/// An answer to a request that does not pass.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Headers beside those that Envoy adds.
    pub headers: SmallVec<[(&'static str, String); 3]>,
    /// What access logs say of it (`%RESPONSE_CODE_DETAILS%`).
    pub details: String,
}

impl Refusal {
    /// The answer to a request that got this verdict, which rests on `limit`. `draw`, from 0 up to 1, spreads the moments at which
    /// refused clients come back.
    pub fn of(verdict: &Verdict, limit: Option<&Limit>, draw: f64) -> Self {
        let details = match limit {
            Some(limit) => format!("headworks_dropped:{}", limit.name),
            None => "headworks_dropped".to_owned(),
        };
        let told = limit.and_then(|limit| Told::of(verdict, limit, None));
        let headers = told.iter().flat_map(|told| told.headers(draw));
        let headers = headers.map(|(name, number)| (name, number.to_string())).collect();
        Self { headers, details }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headworks_agent::{Agent, Attributes, Limiter};
    use headworks_core::limits::parse;
    use tokio::sync::watch;

    use super::*;

    /// A limiter of these limits, which no control plane knows.
    fn limiter(limits: &str) -> Limiter {
        let limits = parse(limits).unwrap();
        Agent::builder("a", "z").standalone(watch::channel((1, Arc::new(limits))).1).build().limiter()
    }

    fn refusal(limits: &str) -> Refusal {
        let limiter = limiter(limits);
        let verdict = (0..3)
            .map(|_| limiter.check(Attributes::new(&[]), None))
            .find(|verdict| !verdict.allowed)
            .unwrap();
        Refusal::of(&verdict, limiter.limit(verdict.limit().unwrap()).as_deref(), 0.0)
    }

    fn header<'r>(refusal: &'r Refusal, name: &str) -> Option<&'r str> {
        refusal.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn tells_when_to_come_back_and_what_the_limit_is() {
        let refusal = refusal("limits: [{name: tenant, rate: 1/minute, burst: 2, enforcement: exact}]");
        assert_eq!(refusal.details, "headworks_dropped:tenant");
        assert_eq!(header(&refusal, "retry-after"), Some("60"));
        assert_eq!(header(&refusal, "x-ratelimit-limit"), Some("2"));
        assert_eq!(header(&refusal, "x-ratelimit-remaining"), Some("0"));
    }

    #[test]
    fn no_wait_ends_a_ban() {
        let refusal = refusal("limits: [{name: banned, rate: 0/second}]");
        assert_eq!(header(&refusal, "retry-after"), None);
        assert_eq!(header(&refusal, "x-ratelimit-limit"), Some("0"));
    }
}
