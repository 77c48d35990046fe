//! Answers to `/allow`, and errors: the bytes that clients read.

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use headworks_agent::{Remaining, Standing, Unanswerable, Verdict};
use headworks_core::limits::Limit;
use headworks_core::units::Headroom;
use http_body_util::Full;
use serde::Serialize;

use super::remaining::{Allowance, PerSecond, retry_after_seconds, whole_milliseconds};

/// An answer in one piece.
pub(super) type Answer = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const ONE_SECOND: HeaderValue = HeaderValue::from_static("1");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");

/// The body of an answer that a limit decided.
#[derive(Serialize)]
struct Decided<'a> {
    allowed: bool,
    limit_name: &'a str,
    #[serde(flatten)]
    amounts: Amounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// Only where it is not: the store of exact limits did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<bool>,
}

/// Absent altogether for an unlimited limit.
#[derive(Default, Serialize)]
pub(super) struct Amounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<PerSecond>,
}

/// The answer to a request that got `verdict`, which rests on `limit`.
pub(super) fn of_verdict(verdict: &Verdict, limit: Option<&Limit>) -> Answer {
    if let Some(unanswerable) = verdict.unanswerable {
        return mistaken(unanswerable, limit);
    }
    let decisive = verdict.decisive.and_then(|decisive| Some((limit?, decisive.standing)));
    match (decisive, verdict.allowed) {
        (None, true) => json(StatusCode::OK, r#"{"allowed":true}"#),
        (None, false) => json(StatusCode::TOO_MANY_REQUESTS, r#"{"allowed":false}"#),
        (Some((limit, standing)), true) => allowed(limit, standing),
        (Some((limit, standing)), false) => refused(limit, standing),
    }
}

/// Whoever asks for what nobody can grant is told why.
fn mistaken(unanswerable: Unanswerable, limit: Option<&Limit>) -> Answer {
    match limit {
        Some(limit) => error(StatusCode::BAD_REQUEST, &format!("limit {}: {unanswerable}", limit.name)),
        None => error(StatusCode::BAD_REQUEST, &unanswerable.to_string()),
    }
}

fn allowed(limit: &Limit, standing: Standing) -> Answer {
    let amounts = match standing {
        Standing::Headroom(headroom) => amounts_at(limit, headroom),
        Standing::Exact(told) | Standing::Uncounted(told) => exact_amounts(told),
    };
    let (remaining, most) = (amounts.remaining, amounts.limit);
    let body = Decided {
        allowed: true,
        limit_name: &limit.name,
        amounts,
        retry_after_ms: None,
        counted: counted(standing),
    };
    let mut answer = json(StatusCode::OK, to_json(&body));
    // An estimate for a whole fleet is no promise to one client; an exact count is.
    if let Standing::Exact(_) = standing {
        tell(&mut answer, remaining, most);
    }
    answer
}

fn counted(standing: Standing) -> Option<bool> {
    matches!(standing, Standing::Uncounted(_)).then_some(false)
}

fn amounts_at(limit: &Limit, headroom: Headroom) -> Amounts {
    match Allowance::of(limit) {
        Some(allowance) => Amounts {
            remaining: Some(allowance.remaining(headroom)),
            limit: Some(allowance.limit),
            rate: Some(allowance.rate),
        },
        None => Amounts::default(),
    }
}

fn exact_amounts(told: Remaining) -> Amounts {
    Amounts { remaining: told.remaining, limit: told.limit, rate: PerSecond::of_rate(told.rate) }
}

fn refused(limit: &Limit, standing: Standing) -> Answer {
    let (amounts, retry_after_ms) = match standing {
        Standing::Headroom(_) => refused_by_ratio(limit),
        Standing::Exact(told) | Standing::Uncounted(told) => {
            (exact_amounts(told), told.retry_after.map(whole_milliseconds))
        }
    };
    let (remaining, most) = (amounts.remaining, amounts.limit);
    let body = Decided {
        allowed: false,
        limit_name: &limit.name,
        amounts,
        retry_after_ms,
        counted: counted(standing),
    };

    let mut answer = json(StatusCode::TOO_MANY_REQUESTS, to_json(&body));
    tell(&mut answer, remaining, most);
    let headers = answer.headers_mut();
    match retry_after_ms.map(retry_after_seconds) {
        None => {}
        Some(1) => drop(headers.insert(RETRY_AFTER, ONE_SECOND)),
        Some(seconds) => drop(headers.insert(RETRY_AFTER, HeaderValue::from(seconds))),
    }
    answer
}

/// Refusals say that nothing remains, also where the surge guard refused while the fleet has room.
fn refused_by_ratio(limit: &Limit) -> (Amounts, Option<u64>) {
    let allowance = Allowance::of(limit);
    let amounts =
        Amounts { remaining: Some(0), limit: allowance.map(|a| a.limit), rate: allowance.map(|a| a.rate) };
    (amounts, allowance.and_then(Allowance::retry_after_ms))
}

fn tell(answer: &mut Answer, remaining: Option<u64>, limit: Option<u64>) {
    let headers = answer.headers_mut();
    for (name, number) in [(REMAINING, remaining), (LIMIT, limit)] {
        if let Some(number) = number {
            headers.insert(name, HeaderValue::from(number));
        }
    }
}

/// An error: what is wrong and what to do.
pub(super) fn error(status: StatusCode, message: &str) -> Answer {
    #[derive(Serialize)]
    struct Failure<'a> {
        error: &'a str,
    }
    json(status, to_json(&Failure { error: message }))
}

/// An error that names the methods which would do.
pub(super) fn wrong_method(allow: &'static str) -> Answer {
    let message = format!("this path takes {allow}: use one of these methods");
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, &message);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    answer
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    of_type(JSON, status, body)
}

/// An answer in plain text.
pub(super) fn text(status: StatusCode, body: &'static str) -> Answer {
    of_type(TEXT, status, body)
}

fn of_type(content_type: HeaderValue, status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// Straight to bytes; fails for no type of this program, which have text for keys and no errors of their own.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    match serde_json::to_writer(&mut bytes, value) {
        Ok(()) => bytes,
        Err(_) => br#"{"error":"cannot be written as JSON"}"#.to_vec(),
    }
}

#[cfg(test)]
mod tests;
