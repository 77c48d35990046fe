//! A service of axum, held to limits: by default its own, with an aggregator's address to those of a fleet.
//!
//! ```sh
//! cargo run -p headworks-tower --example axum [-- http://127.0.0.1:7100]
//! for i in 1 2 3 4 5 6; do curl -si http://127.0.0.1:3000/ | grep -iE '^(HTTP|retry|ratelimit)'; done
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use headworks_agent::{Agent, Limiter};
use headworks_core::limits::parse;
use headworks_tower::{Answers, Describe, HeadworksLayer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const LIMITS: &str = "limits: [{name: web, match: {service: web}, per: [client], rate: 5/second, burst: 5, enforcement: exact}]";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder("example-axum", "zone-a");
    let agent = match std::env::args().nth(1) {
        Some(aggregator) => agent.aggregators([aggregator]).build(),
        None => agent.standalone(watch::channel((1, Arc::new(parse(LIMITS)?))).1).build(),
    };
    let layer = limited(agent.limiter());
    tokio::spawn(agent.run(CancellationToken::new()));

    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}", listener.local_addr()?);
    serve(listener, Router::new().route("/", get(async || "it passed\n")).layer(layer)).await?;
    Ok(())
}

/// Each client has a bucket of its own. Behind a proxy that adds to `X-Forwarded-For`, the 0 would be a 1.
pub fn limited(limiter: Limiter) -> HeadworksLayer<impl Describe + Clone> {
    HeadworksLayer::new(limiter, |request, attributes| {
        let peer = request.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        attributes.push("service", "web");
        attributes.push_client("client", peer, &request.headers, 0);
    })
    .answering(Answers { rate_limit_fields: true, ..Answers::default() })
}

/// Serves `router`, with the address of each client.
pub async fn serve(listener: TcpListener, router: Router) -> std::io::Result<()> {
    axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await
}
