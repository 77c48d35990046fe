//! The client of one target: connections that carry one request at a time.

use axum::http::header::HOST;
use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use headworks_agent::tls::Trust;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

use super::outcome::{Failure, Outcome};
use super::target::{Address, Target};

/// More than an answer to `/allow` ever has; whoever answers more is no agent.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// What is needed to ask one target.
pub(super) struct Client {
    address: Address,
    host: String,
    path_and_query: String,
    /// Whom to trust, and the name that the certificate must be for.
    tls: Option<(Trust, String)>,
}

/// An open connection, idle while held.
pub(super) struct Connection(SendRequest<Empty<Bytes>>);

/// Why a request has no answer.
enum Trouble {
    /// Nothing of it was sent: the server had closed the idle connection.
    Unsent,
    Failed(Failure),
}

impl Client {
    /// A client that asks `target`, found at `address`, with `query`.
    pub(super) fn new(target: &Target, address: Address, query: &str) -> Self {
        let path_and_query = format!("{}?{query}", target.path);
        Self { address, host: target.host.clone(), path_and_query, tls: None }
    }

    /// The same over TLS, where the certificate must be for this name.
    pub(super) fn trusting(self, trust: Trust, name: String) -> Self {
        Self { tls: Some((trust, name)), ..self }
    }

    /// Asks once, on `idle` if it is still open, else on a new connection. The connection comes back if it can be
    /// used again.
    pub(super) async fn ask(
        &self,
        idle: Option<Connection>,
        deadline: Instant,
    ) -> (Outcome, Option<Connection>) {
        match timeout_at(deadline, self.exchange(idle)).await {
            Ok(Ok((outcome, connection))) => (outcome, Some(connection)),
            Ok(Err(failure)) => (Outcome::Failed(failure), None),
            Err(_) => (Outcome::Failed(Failure::Timeout), None),
        }
    }

    async fn exchange(&self, idle: Option<Connection>) -> Result<(Outcome, Connection), Failure> {
        if let Some(mut connection) = idle {
            match self.send(&mut connection).await {
                Ok(outcome) => return Ok((outcome, connection)),
                Err(Trouble::Failed(failure)) => return Err(failure),
                Err(Trouble::Unsent) => {}
            }
        }
        let mut connection = self.connect().await?;
        match self.send(&mut connection).await {
            Ok(outcome) => Ok((outcome, connection)),
            Err(Trouble::Failed(failure)) => Err(failure),
            Err(Trouble::Unsent) => Err(Failure::Broken),
        }
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        match &self.address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(|_| Failure::Connect)?;
                let _ = stream.set_nodelay(true);
                match &self.tls {
                    None => Connection::over(stream).await,
                    Some((trust, name)) => {
                        Connection::over(trust.secure(stream, name).await.map_err(|_| Failure::Connect)?)
                            .await
                    }
                }
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|_| Failure::Connect)?;
                Connection::over(stream).await
            }
        }
    }

    async fn send(&self, connection: &mut Connection) -> Result<Outcome, Trouble> {
        connection.0.ready().await.map_err(|_| Trouble::Unsent)?;
        let request = Request::get(&self.path_and_query).header(HOST, &self.host).body(Empty::new());
        let request = request.map_err(|_| Trouble::Failed(Failure::Broken))?;
        let response = connection.0.try_send_request(request).await.map_err(|mut error| {
            let unsent = error.take_message().is_some();
            if unsent { Trouble::Unsent } else { Trouble::Failed(Failure::Broken) }
        })?;
        read(response).await.map_err(Trouble::Failed)
    }
}

impl Connection {
    async fn over<IO: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: IO) -> Result<Self, Failure> {
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|_| Failure::Connect)?;
        // Ends by itself once the sender is dropped; its errors reach the requests that they concern.
        tokio::spawn(driver);
        Ok(Self(sender))
    }
}

/// Reads an answer to its end, without which its connection could not be used again.
async fn read(response: Response<Incoming>) -> Result<Outcome, Failure> {
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
    let body = body.map_err(|_| Failure::Broken)?.to_bytes();
    Ok(match status {
        StatusCode::TOO_MANY_REQUESTS => Outcome::Denied(limit_name(&body)),
        status if status.is_success() => Outcome::Allowed,
        status => Outcome::Failed(Failure::Status(status.as_u16())),
    })
}

fn limit_name(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        limit_name: String,
    }
    serde_json::from_slice::<Refusal>(body).ok().map(|refusal| refusal.limit_name)
}
