//! Answers to `/allow`, and errors: the bytes that clients read.

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use headworks_agent::told::{Basis, Told, Wait};
use headworks_agent::{Unanswerable, Verdict};
use headworks_core::limits::Limit;
use http_body_util::Full;
use serde::Serialize;

use super::per_second::PerSecond;

/// An answer in one piece.
pub(super) type Answer = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

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

/// The answer to a request of this cost that got `verdict`, which rests on `limit`. `draw`, from 0 up to 1, spreads the moments
/// at which refused clients come back.
pub(super) fn of_verdict(verdict: &Verdict, limit: Option<&Limit>, asked: Option<u32>, draw: f64) -> Answer {
    if let Some(unanswerable) = verdict.unanswerable {
        return mistaken(unanswerable, limit);
    }
    let told = limit.and_then(|limit| Some((limit, Told::of(verdict, limit, asked)?)));
    match (told, verdict.allowed) {
        (None, true) => json(StatusCode::OK, r#"{"allowed":true}"#),
        (None, false) => json(StatusCode::TOO_MANY_REQUESTS, r#"{"allowed":false}"#),
        (Some((limit, told)), allowed) => decided(allowed, limit, &told, draw),
    }
}

/// Whoever asks for what nobody can grant is told why.
fn mistaken(unanswerable: Unanswerable, limit: Option<&Limit>) -> Answer {
    match limit {
        Some(limit) => error(StatusCode::BAD_REQUEST, &format!("limit {}: {unanswerable}", limit.name)),
        None => error(StatusCode::BAD_REQUEST, &unanswerable.to_string()),
    }
}

fn decided(allowed: bool, limit: &Limit, told: &Told, draw: f64) -> Answer {
    let body = Decided {
        allowed,
        limit_name: &limit.name,
        amounts: amounts(told),
        retry_after_ms: told.wait.map(Wait::least_ms),
        counted: (told.basis == Basis::Uncounted).then_some(false),
    };
    let status = if allowed { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
    let mut answer = json(status, to_json(&body));
    let headers = answer.headers_mut();
    for (name, number) in told.headers(draw) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(number));
    }
    answer
}

fn amounts(told: &Told) -> Amounts {
    Amounts { remaining: told.remaining, limit: told.limit, rate: PerSecond::of(told.rate) }
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
