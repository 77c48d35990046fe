//! The client's side: one request to a node's admin port.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Token;
use crate::failure::Failure;
use crate::legible;

/// Time for the whole conversation.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// What to ask.
pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) token: Option<&'a Token>,
    pub(crate) body: String,
}

impl<'a> Question<'a> {
    /// Asks for what is at a path.
    pub(crate) fn get(path: &'static str, token: Option<&'a Token>) -> Self {
        Self { method: Method::GET, path, token, body: String::new() }
    }
}

/// The answer of the node with this admin address, `http://host:port`, if it is one that says yes.
pub(crate) async fn ask(admin: &str, question: Question<'_>) -> Result<Vec<u8>, Failure> {
    let authority = authority(admin)?;
    let answer = timeout(PATIENCE, exchange(admin, &authority, question)).await;
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
        StatusCode::NOT_FOUND => format!("{admin} does not know that; is it the admin port of a controller?"),
        _ => format!("{admin} answered {code}: {said}; is it an admin port?"),
    }))
}

async fn exchange(
    admin: &str,
    authority: &str,
    question: Question<'_>,
) -> Result<(StatusCode, Vec<u8>), Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::Failed(format!("cannot ask {admin}: {error}; is a node running with that --admin?"))
    };
    let stream = TcpStream::connect(authority).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    tokio::spawn(connection);
    let mut request =
        hyper::Request::builder().method(question.method).uri(question.path).header("host", authority);
    if let Some(token) = question.token {
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

fn authority(admin: &str) -> Result<String, Failure> {
    let hint = || Failure::Usage(format!("--admin {admin:?} is no address; write it as http://host:port"));
    let uri: hyper::Uri = admin.parse().map_err(|_| hint())?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http") | None, Some(authority)) if authority.port().is_some() && !admin.contains('@') => {
            Ok(authority.to_string())
        }
        _ => Err(hint()),
    }
}
