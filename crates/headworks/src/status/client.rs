//! `headworks status`: asks a node's admin port.

use std::path::Path;
use std::time::Duration;

use headworks_agent::tls::Trust;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::http::uri::Authority;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::either::Either;

use super::model::NodeStatus;
use super::table;
use crate::cli::StatusArgs;
use crate::failure::Failure;

/// Time for the whole conversation.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Runs the command.
pub(crate) async fn run(args: &StatusArgs) -> Result<(), Failure> {
    let (status, body) = ask_over(&args.admin, args.tls_ca.as_deref()).await?;
    if args.json {
        println!("{}", String::from_utf8_lossy(&body));
    } else {
        print!("{}", table::render(&status));
    }
    Ok(())
}

/// What the node with this admin address, `http://host:port`, sees; and the same as it told it.
pub(crate) async fn ask(admin: &str) -> Result<(NodeStatus, Vec<u8>), Failure> {
    ask_over(admin, None).await
}

/// The same, for an address that may be `https://`, with the authorities to trust then.
async fn ask_over(admin: &str, authorities: Option<&Path>) -> Result<(NodeStatus, Vec<u8>), Failure> {
    let body = timeout(PATIENCE, fetch(admin, authorities))
        .await
        .map_err(|_| Failure::Failed(format!("{admin} did not answer within 5 s")))??;
    let status = serde_json::from_slice(&body).map_err(|error| {
        Failure::Failed(format!("{admin} answered what is no status: {error}; is it an admin port?"))
    })?;
    Ok((status, body))
}

async fn fetch(admin: &str, authorities: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let (scheme, authority) = address(admin)?;
    let trust = match scheme {
        Scheme::Plain => None,
        Scheme::Tls => Some(trust(authorities)?),
    };
    let failed = |error: &dyn std::error::Error| {
        Failure::Failed(format!("cannot ask {admin}: {error}; is a node running with that --admin?"))
    };
    let stream = TcpStream::connect(authority.as_str()).await.map_err(|error| failed(&error))?;
    let stream = match trust {
        None => Either::Left(stream),
        Some(trust) => {
            Either::Right(trust.secure(stream, authority.host()).await.map_err(|error| failed(&error))?)
        }
    };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    tokio::spawn(connection);
    let request =
        hyper::Request::get("/status").header("host", authority.as_str()).body(Empty::<bytes::Bytes>::new());
    let request = request.map_err(|error| failed(&error))?;
    let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
    let code = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
    let body =
        body.map_err(|error| Failure::Failed(format!("cannot read the answer of {admin}: {error}")))?;
    if !code.is_success() {
        return Err(Failure::Failed(format!("{admin} answered {code}; is it an admin port?")));
    }
    Ok(body.to_bytes().to_vec())
}

enum Scheme {
    Plain,
    Tls,
}

fn address(admin: &str) -> Result<(Scheme, Authority), Failure> {
    let hint = || Failure::Usage(format!("--admin {admin:?} is no address; write it as http://host:port"));
    let uri: hyper::Uri = admin.parse().map_err(|_| hint())?;
    let scheme = match uri.scheme_str() {
        Some("http") | None => Scheme::Plain,
        Some("https") => Scheme::Tls,
        Some(_) => return Err(hint()),
    };
    let authority = uri.authority().filter(|authority| authority.port().is_some());
    Ok((scheme, authority.cloned().ok_or_else(hint)?))
}

fn trust(authorities: Option<&Path>) -> Result<Trust, Failure> {
    let Some(path) = authorities else {
        let message =
            "an https:// address needs --tls-ca, the authorities that its certificate must come from";
        return Err(Failure::Usage(message.to_owned()));
    };
    Trust::load(path).map_err(|error| Failure::Usage(error.to_string()))
}
