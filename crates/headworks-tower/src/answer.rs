//! What a refused request is answered.

use std::sync::Arc;
use std::time::Duration;

use headworks_agent::told::Told;
use headworks_agent::{Limiter, Verdict};
use headworks_core::limits::Limit;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::fields::Fields;

/// When a gRPC client may try again, in milliseconds; below 0 for never (gRPC proposal A6).
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// How refusals are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The status of gRPC. `RESOURCE_EXHAUSTED`, which no client takes for a fault of the server: of `UNAVAILABLE` all try again
    /// at once.
    pub grpc_code: Code,
    /// Whether responses tell of limits in `RateLimit-Policy` and `RateLimit`, also those to requests that pass.
    pub rate_limit_fields: bool,
}

impl Default for Answers {
    fn default() -> Self {
        Self { grpc_code: Code::ResourceExhausted, rate_limit_fields: false }
    }
}

/// An extension of a response that says it is a refusal, for layers around this one that would write a body, or count.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The limit that refused.
    pub limit: Option<Arc<Limit>>,
    /// When the client may come back, as it was told; `None` for a ban.
    pub retry_after: Option<Duration>,
}

impl Answers {
    /// The answer to a request with these headers. It has no body: HTTP is told in headers, gRPC in trailers, which are headers
    /// where nothing comes before them.
    pub(crate) fn refusal<R: Default>(
        self,
        limiter: &Limiter,
        verdict: &Verdict,
        asked: &HeaderMap,
    ) -> Response<R> {
        let limit = verdict.limit().and_then(|limit| limiter.limit(limit));
        let told = limit.as_deref().and_then(|limit| Told::of(verdict, limit, None));
        let wait = told.and_then(|told| told.wait);
        let draw = fastrand::f64();
        let (mut response, retry_after) = match grpc_type(asked) {
            Some(content_type) => {
                let name = limit.as_deref().map(|limit| &*limit.name);
                let wait = wait.map(|wait| wait.spread(draw));
                (self.to_grpc(name, wait, content_type), wait)
            }
            None => {
                let seconds = wait.map(|wait| wait.retry_after(draw));
                (self.to_http(limit.as_deref(), told.as_ref(), seconds), seconds.map(Duration::from_secs))
            }
        };
        response.extensions_mut().insert(Refused { limit, retry_after });
        response
    }

    fn to_http<R: Default>(
        self,
        limit: Option<&Limit>,
        told: Option<&Told>,
        seconds: Option<u64>,
    ) -> Response<R> {
        let mut response = Response::new(R::default());
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let headers = response.headers_mut();
        if let Some(seconds) = seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.rate_limit_fields
            && let (Some(limit), Some(told)) = (limit, told)
            && let Some(fields) = Fields::of_refusal(&limit.name, told, seconds)
        {
            fields.put_into(headers);
        }
        response
    }

    fn to_grpc<R: Default>(
        self,
        limit: Option<&str>,
        wait: Option<Duration>,
        content_type: &HeaderValue,
    ) -> Response<R> {
        let mut metadata = MetadataMap::new();
        let pushback = wait.map_or(-1, milliseconds);
        metadata.insert(PUSHBACK, MetadataValue::from(pushback));
        let message = match limit {
            Some(limit) => format!("rate limit {limit} exceeded"),
            None => "rate limit exceeded".to_owned(),
        };
        let details = wait.map_or_else(ErrorDetails::new, |wait| ErrorDetails::with_retry_info(Some(wait)));
        let status = Status::with_error_details_and_metadata(self.grpc_code, message, details, metadata);
        let mut response = status.into_http();
        response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
        response
    }
}

/// Rounded up: who comes a part of one too early is refused again.
fn milliseconds(wait: Duration) -> i64 {
    i64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// The content type of a gRPC request, be it for browsers (`application/grpc-web`) or not.
fn grpc_type(asked: &HeaderMap) -> Option<&HeaderValue> {
    asked.get(CONTENT_TYPE).filter(|value| value.as_bytes().starts_with(b"application/grpc"))
}
