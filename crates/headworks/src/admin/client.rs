//! The client's side: one request to a node's admin port.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use headworks_agent::tls::Trust;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::either::Either;

use super::Token;
use crate::failure::Failure;
use crate::legible;

/// Time for the whole conversation.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Who asks: the token that it gives, and whom it trusts where it asks over TLS.
#[derive(Debug, Default)]
pub(crate) struct Client {
    token: Option<Token>,
    trust: Option<Trust>,
    /// Nodes that were sent the token in plain text; said once of each.
    told: Mutex<BTreeSet<String>>,
}

/// What is in an answer of a controller; `no` is what else it must be.
pub(crate) fn read<T: DeserializeOwned>(admin: &str, answer: &[u8], no: &str) -> Result<T, Failure> {
    serde_json::from_slice(answer).map_err(|error| {
        let advice = "is it the admin port of a controller?";
        Failure::Failed(format!("{admin} answered what {no}: {error}; {advice}"))
    })
}

/// What to ask.
pub(crate) struct Question {
    pub(crate) method: Method,
    pub(crate) path: Cow<'static, str>,
    pub(crate) body: String,
}

impl Question {
    /// Asks for what is at a path.
    pub(crate) fn get(path: impl Into<Cow<'static, str>>) -> Self {
        Self { method: Method::GET, path: path.into(), body: String::new() }
    }
}

impl Client {
    /// One that gives this token, and trusts these authorities.
    pub(crate) fn new(token: Option<Token>, trust: Option<Trust>) -> Self {
        Self { token, trust, told: Mutex::default() }
    }

    fn warn(&self, admin: &str, address: &Address) {
        let in_plain_text = self.token.is_some() && !address.secure && !address.is_here();
        if in_plain_text && self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(admin.to_owned())
        {
            eprintln!(
                "headworks: the token goes to {admin} in plain text; use https:// if the node has --admin-tls"
            );
        }
    }

    /// The answer of the node with this admin address, such as `https://host:port`, if it is one that says yes.
    pub(crate) async fn ask(&self, admin: &str, question: Question) -> Result<Vec<u8>, Failure> {
        let address = Address::of(admin)?;
        self.warn(admin, &address);
        let answer = timeout(PATIENCE, self.exchange(admin, &address, question)).await;
        let (code, body) =
            answer.map_err(|_| Failure::Failed(format!("{admin} did not answer within 5 s")))??;
        if code.is_success() {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body);
        let said = legible::cut(text.trim(), 256);
        Err(Failure::Failed(match code {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
                format!("{admin} refused: {said}; give the token with --token-file")
            }
            // What its own words explain.
            StatusCode::NOT_FOUND | StatusCode::CONFLICT if !said.is_empty() => format!("{admin}: {said}"),
            StatusCode::NOT_FOUND => {
                format!("{admin} does not know that; is it the admin port of a controller?")
            }
            _ => format!("{admin} answered {code}: {said}; is it an admin port?"),
        }))
    }

    async fn exchange(
        &self,
        admin: &str,
        address: &Address,
        question: Question,
    ) -> Result<(StatusCode, Vec<u8>), Failure> {
        let failed = |error: &dyn std::error::Error| {
            Failure::Failed(format!("cannot ask {admin}: {error}; is a node running with that --admin?"))
        };
        let authority = address.authority.as_str();
        // Before anything is sent: the token must not go to somebody who shows no certificate.
        let trust = if address.secure { Some(self.trust()?) } else { None };
        let stream = TcpStream::connect(authority).await.map_err(|error| failed(&error))?;
        let stream = match trust {
            None => Either::Left(stream),
            Some(trust) => {
                let secured = trust.secure(stream, address.authority.host()).await;
                Either::Right(secured.map_err(|error| failed(&error))?)
            }
        };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        tokio::spawn(connection);
        let mut request =
            hyper::Request::builder().method(question.method).uri(&*question.path).header("host", authority);
        if let Some(token) = &self.token {
            request = request.header("authorization", token.bearer());
        }
        let body = Full::new(bytes::Bytes::from(question.body));
        let request = request.body(body).map_err(|error| failed(&error))?;
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let code = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let body =
            body.map_err(|error| Failure::Failed(format!("cannot read the answer of {admin}: {error}")))?;
        Ok((code, body.to_bytes().to_vec()))
    }

    fn trust(&self) -> Result<&Trust, Failure> {
        self.trust.as_ref().ok_or_else(|| {
            let need =
                "an https:// address needs --tls-ca, the authorities that its certificate must come from";
            Failure::Usage(need.to_owned())
        })
    }
}

/// Where to ask.
struct Address {
    secure: bool,
    authority: Authority,
}

impl Address {
    fn is_here(&self) -> bool {
        let host = self.authority.host().trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.to_canonical().is_loopback())
    }

    fn of(admin: &str) -> Result<Self, Failure> {
        let hint = || {
            Failure::Usage(format!(
                "--admin {admin:?} is no address; write it as http://host:port or https://host:port"
            ))
        };
        let uri: hyper::Uri = admin.parse().map_err(|_| hint())?;
        let secure = match uri.scheme_str() {
            Some("http") | None => false,
            Some("https") => true,
            Some(_) => return Err(hint()),
        };
        let authority = uri.authority().filter(|authority| authority.port().is_some());
        let authority = authority.filter(|_| !admin.contains('@')).cloned().ok_or_else(hint)?;
        Ok(Self { secure, authority })
    }
}
