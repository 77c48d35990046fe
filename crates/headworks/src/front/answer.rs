//! Answers to `/allow`, and errors: the bytes that clients read.

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use headworks_agent::{Decisive, Verdict};
use http_body_util::Full;
use serde::Serialize;

use super::remaining::{Allowance, PerSecond, retry_after_seconds};

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

/// The answer to a request that got `verdict`.
pub(super) fn of_verdict(verdict: &Verdict) -> Answer {
    match (&verdict.decisive, verdict.allowed) {
        (None, true) => json(StatusCode::OK, r#"{"allowed":true}"#),
        (None, false) => json(StatusCode::TOO_MANY_REQUESTS, r#"{"allowed":false}"#),
        (Some(decisive), true) => allowed(decisive),
        (Some(decisive), false) => refused(decisive),
    }
}

fn allowed(decisive: &Decisive) -> Answer {
    let amounts = match Allowance::of(&decisive.limit) {
        Some(allowance) => Amounts {
            remaining: Some(allowance.remaining(decisive.headroom)),
            limit: Some(allowance.limit),
            rate: Some(allowance.rate),
        },
        None => Amounts::default(),
    };
    let body = Decided { allowed: true, limit_name: &decisive.limit.name, amounts, retry_after_ms: None };
    json(StatusCode::OK, to_json(&body))
}

/// Refusals say that nothing remains, also where the surge guard refused while the fleet has room.
fn refused(decisive: &Decisive) -> Answer {
    let allowance = Allowance::of(&decisive.limit);
    let limit = allowance.map(|a| a.limit);
    let retry_after_ms = allowance.and_then(Allowance::retry_after_ms);
    let amounts = Amounts { remaining: Some(0), limit, rate: allowance.map(|a| a.rate) };
    let body = Decided { allowed: false, limit_name: &decisive.limit.name, amounts, retry_after_ms };

    let mut answer = json(StatusCode::TOO_MANY_REQUESTS, to_json(&body));
    let headers = answer.headers_mut();
    headers.insert(REMAINING, HeaderValue::from_static("0"));
    if let Some(limit) = limit {
        headers.insert(LIMIT, HeaderValue::from(limit));
    }
    match retry_after_ms.map(retry_after_seconds) {
        None => {}
        Some(1) => drop(headers.insert(RETRY_AFTER, ONE_SECOND)),
        Some(seconds) => drop(headers.insert(RETRY_AFTER, HeaderValue::from(seconds))),
    }
    answer
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
