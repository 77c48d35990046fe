//! Dialling a parent.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint, Error};

/// Time to connect before another parent is tried.
const CONNECT: Duration = Duration::from_secs(3);
/// Pings on the stream, and how long an answer may take: a half-open link is found within 10 s.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// A connection to the parent at `target`, such as `http://10.0.0.1:7100`.
pub(super) async fn connect(target: &str) -> Result<Channel, Error> {
    let endpoint = Endpoint::from_shared(target.to_owned())?
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true);
    endpoint.connect().await
}
