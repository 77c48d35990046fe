//! The gate before the admin port: who may do what.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::token::TokenFile;
use crate::console::is_asset;
use crate::patience::{Patience, Reaction};

/// What is open to everybody who can reach the port, wherever it is bound, beside the files of the console's page, which hold no
/// data.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refusals that are told at once: a script that was not told of a new token fails in every line.
const AT_ONCE: u32 = 20;
/// And each second after that.
const PER_SECOND: f64 = 1.0;

/// The gate of one admin port.
#[derive(Debug)]
pub(super) struct Gate {
    token: Option<Arc<TokenFile>>,
    /// The port can be reached from other machines.
    wide: bool,
    refused: AtomicU64,
    patience: Mutex<Patience>,
}

/// Why a request may not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// It asks for this port by a name that anybody may have made up.
    OtherName,
    /// There is no token that would let it pass.
    NoneConfigured,
    /// It brings none.
    Missing,
    /// It brings another.
    Wrong,
}

/// Whether a request needs the token: all that may change something, on any path, so that no route can forget it; beyond
/// loopback also what names callers.
fn needs_token(method: &Method, path: &str, wide: bool) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    !reads || wide && !OPEN.contains(&path) && !is_asset(path)
}

/// Whether a request asks for this machine by what means no other one. A web page from elsewhere may have its own name lead to
/// 127.0.0.1 (DNS rebinding), and would then read in the browser of an operator what needs no token on loopback. Who forwards
/// a port asks for `localhost` or an address; a browser always says what it asks for.
fn names_here(request: &Request) -> bool {
    let of_header = || request.headers().get(HOST).map(|host| host.as_bytes());
    let host = request.uri().authority().map(|authority| authority.as_str().as_bytes()).or_else(of_header);
    host.is_none_or(|host| Authority::try_from(host).is_ok_and(|authority| is_here(authority.host())))
}

fn is_here(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok()
        || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

impl Gate {
    pub(super) fn new(token: Option<Arc<TokenFile>>, wide: bool) -> Self {
        let patience = Mutex::new(Patience::new(AT_ONCE, PER_SECOND, Instant::now()));
        Self { token, wide, refused: AtomicU64::new(0), patience }
    }

    /// Requests refused so far.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn judge(&self, request: &Request) -> Result<(), Refusal> {
        if !self.wide && !OPEN.contains(&request.uri().path()) && !names_here(request) {
            return Err(Refusal::OtherName);
        }
        if !needs_token(request.method(), request.uri().path(), self.wide) {
            return Ok(());
        }
        // Never without a token, also on loopback: a web page can send forms there from the browser of an operator.
        let Some(token) = &self.token else { return Err(Refusal::NoneConfigured) };
        match bearer(request.headers()) {
            None => Err(Refusal::Missing),
            Some(guess) if token.is(guess) => Ok(()),
            Some(_) => Err(Refusal::Wrong),
        }
    }

    fn refuse(&self, request: &Request, refusal: Refusal) -> Response {
        self.refused.fetch_add(1, Relaxed);
        let reaction = self.patience.lock().unwrap_or_else(PoisonError::into_inner).meet(Instant::now());
        if let Reaction::Say { unsaid } = reaction {
            let (method, path) = (request.method().as_str(), request.uri().path());
            tracing::warn!(method, path, unsaid, "admin request refused: {}", refusal.cause());
        }
        answer(refusal, &reaction)
    }
}

/// Lets a request pass, or answers it.
pub(super) async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    match gate.judge(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => gate.refuse(&request, refusal),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

impl Refusal {
    fn cause(self) -> &'static str {
        match self {
            Refusal::OtherName => {
                "this port is on loopback, and is asked for by another name than localhost or an address: use \
                 http://127.0.0.1:PORT, or send `Host: localhost`"
            }
            Refusal::NoneConfigured => "no token configured: start with --admin-token-file",
            Refusal::Missing => "no token given: send it as `Authorization: Bearer TOKEN`",
            Refusal::Wrong => "wrong token: send the one that the file of --admin-token-file holds",
        }
    }
}

fn answer(refusal: Refusal, reaction: &Reaction) -> Response {
    let text = format!("{}\n", refusal.cause());
    match (refusal, reaction) {
        (Refusal::OtherName, _) => (StatusCode::MISDIRECTED_REQUEST, text).into_response(),
        (Refusal::NoneConfigured, _) => (StatusCode::FORBIDDEN, text).into_response(),
        (_, Reaction::Say { .. }) => {
            let challenge = [(WWW_AUTHENTICATE, "Bearer realm=\"headworks\"")];
            (StatusCode::UNAUTHORIZED, challenge, text).into_response()
        }
        (_, Reaction::Count) => {
            let text = format!("too many requests without the right token; {text}");
            (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")], text).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_something_needs_the_token_everywhere() {
        for method in
            [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::TRACE]
        {
            for path in ["/shadow-all", "/metrics", "/healthz", "/nowhere"] {
                assert!(
                    needs_token(&method, path, false) && needs_token(&method, path, true),
                    "{method} {path}"
                );
            }
        }
    }

    #[test]
    fn what_names_callers_needs_it_beyond_loopback() {
        for method in [Method::GET, Method::HEAD] {
            for path in ["/status", "/shadow-all", "/console/events", "/console/file/running", "/nowhere"] {
                assert!(
                    !needs_token(&method, path, false) && needs_token(&method, path, true),
                    "{method} {path}"
                );
            }
            let open = OPEN.iter().chain(&["/", "/console/"]);
            assert!(open.into_iter().all(|path| !needs_token(&method, path, true)));
        }
    }

    #[test]
    fn on_loopback_a_page_that_had_its_name_lead_there_reads_nothing() {
        let judged = |wide, path: &str, host: Option<&str>| {
            let mut request = Request::builder().uri(path);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            Gate::new(None, wide).judge(&request.body(axum::body::Body::empty()).unwrap())
        };
        for host in ["localhost", "LOCALHOST:9120", "127.0.0.1:9120", "[::1]:9120", "10.0.0.7"] {
            assert_eq!(judged(false, "/status", Some(host)), Ok(()), "{host}");
        }
        assert_eq!(judged(false, "/status", None), Ok(()));
        for host in ["rebound.example:9120", "localhost.example", "127.0.0.1.example", "", "a b", "::1"] {
            for path in ["/status", "/console/events", "/console/", "/console/file/running"] {
                assert_eq!(judged(false, path, Some(host)), Err(Refusal::OtherName), "{host} {path}");
            }
            assert_eq!(judged(false, "/metrics", Some(host)), Ok(()));
            assert_eq!(judged(true, "/console/", Some(host)), Ok(()));
        }
        let absolute = judged(false, "http://rebound.example/status", Some("localhost"));
        assert_eq!(absolute, Err(Refusal::OtherName));
    }

    #[test]
    fn a_token_is_taken_from_a_bearer_header_alone() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            bearer(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(of("Bearer abc").as_deref(), Some(&b"abc"[..]));
        assert_eq!(of("bearer  abc ").as_deref(), Some(&b"abc"[..]));
        for other in ["abc", "Basic abc", "Bearer", "Bear", ""] {
            assert_eq!(of(other), None, "{other:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
