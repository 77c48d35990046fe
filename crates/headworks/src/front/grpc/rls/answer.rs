//! Answers of the rate limit service. Pure.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit as WireUnit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};
use envoy_types::pb::google::protobuf::Duration;
use headworks_agent::told::Told;
use headworks_core::units::{Rate, Unit};

use super::ask::Instead;
use crate::front::decider::Decided;

/// What is said to one descriptor.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) passes: bool,
    /// The limit that says it, and its numbers.
    pub(super) by: Option<(By, Told)>,
}

/// Who says it.
#[derive(Clone, Debug)]
pub(super) enum By {
    /// A limit in force, of this name.
    Limit(std::sync::Arc<str>),
    /// A limit that came with the request.
    Request(Instead),
}

impl Said {
    /// What is said where no limit has a say.
    pub(super) fn nothing() -> Self {
        Self { passes: true, by: None }
    }

    pub(super) fn by_limits(decided: Decided) -> Self {
        let by = decided.by.map(|(limit, told)| (By::Limit(limit.name.clone()), told));
        Self { passes: decided.allowed, by }
    }

    pub(super) fn by_request(instead: Instead, told: Told, passes: bool) -> Self {
        Self { passes, by: Some((By::Request(instead), told)) }
    }
}

/// The answer to a request to whose descriptors this was said, in their order. `draw`, from 0 up to 1, spreads the moments at
/// which refused clients come back.
pub(super) fn of(said: &[Said], draw: f64) -> RateLimitResponse {
    let refused = said.iter().find(|said| !said.passes);
    RateLimitResponse {
        overall_code: code(refused.is_none()),
        statuses: said.iter().map(|said| status(said, draw)).collect(),
        response_headers_to_add: refused.map(|refused| headers(refused, draw)).unwrap_or_default(),
        ..RateLimitResponse::default()
    }
}

fn code(passes: bool) -> i32 {
    if passes { Code::Ok } else { Code::OverLimit }.into()
}

fn status(said: &Said, draw: f64) -> DescriptorStatus {
    let told = said.by.as_ref().map(|(_, told)| told);
    DescriptorStatus {
        code: code(said.passes),
        current_limit: said.by.as_ref().and_then(|(by, told)| current(by, told)),
        limit_remaining: match told {
            Some(told) => told.remaining.map_or(u32::MAX, clipped),
            None => 0,
        },
        duration_until_reset: told.and_then(|told| until(said.passes, told, draw)),
        quota: None,
    }
}

/// The limit as it is configured, unless it is unlimited.
fn current(by: &By, told: &Told) -> Option<RateLimit> {
    match by {
        By::Request(instead) => {
            Some(RateLimit { name: String::new(), requests_per_unit: instead.amount, unit: instead.unit })
        }
        By::Limit(name) => {
            let Rate::Per { amount, unit } = told.rate else { return None };
            let unit = wire_unit(unit).into();
            Some(RateLimit { name: name.to_string(), requests_per_unit: clipped(amount), unit })
        }
    }
}

fn wire_unit(unit: Unit) -> WireUnit {
    match unit {
        Unit::Second => WireUnit::Second,
        Unit::Minute => WireUnit::Minute,
        Unit::Hour => WireUnit::Hour,
        Unit::Day => WireUnit::Day,
        Unit::Month => WireUnit::Month,
        Unit::Year => WireUnit::Year,
    }
}

/// What does not fit is as good as the most that does.
fn clipped(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

/// Of a refusal the whole seconds that a client should wait, of which Envoy makes its `Retry-After`; else those until all of the
/// limit is there again.
fn until(passes: bool, told: &Told, draw: f64) -> Option<Duration> {
    let seconds = if passes { told.reset()? } else { told.wait?.retry_after(draw) };
    Some(Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 })
}

/// What clients are told of the limit that refused, as by `/allow`.
fn headers(refused: &Said, draw: f64) -> Vec<HeaderValue> {
    let Some((_, told)) = &refused.by else { return Vec::new() };
    told.headers(draw).map(|(key, value)| header(key, &value.to_string())).collect()
}

fn header(key: &str, value: &str) -> HeaderValue {
    HeaderValue { key: key.to_owned(), value: value.to_owned(), raw_value: Vec::new() }
}
