//! A gRPC service, held to limits: by default its own, with an aggregator's address to those of a fleet. So that the example needs
//! no protocol of its own, the service is the one by which gRPC servers tell their health.
//!
//! ```sh
//! cargo run -p headworks-tower --example tonic [-- http://127.0.0.1:7100]
//! for i in 1 2 3 4 5 6; do grpcurl -plaintext 127.0.0.1:50051 grpc.health.v1.Health/Check; done
//! ```

use std::sync::Arc;

use headworks_agent::{Agent, Limiter};
use headworks_core::limits::parse;
use headworks_tower::{Describe, HeadworksLayer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

const LIMITS: &str = "limits: [{name: calls, match: {service: grpc}, per: [method], rate: 5/second, burst: 5, enforcement: exact}]";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder("example-tonic", "zone-a");
    let agent = match std::env::args().nth(1) {
        Some(aggregator) => agent.aggregators([aggregator]).build(),
        None => agent.standalone(watch::channel((1, Arc::new(parse(LIMITS)?))).1).build(),
    };
    let layer = limited(agent.limiter());
    tokio::spawn(agent.run(CancellationToken::new()));

    let listener = TcpListener::bind("127.0.0.1:50051").await?;
    println!("http://{}", listener.local_addr()?);
    serve(listener, layer).await?;
    Ok(())
}

/// Each method has a bucket of its own.
pub fn limited(limiter: Limiter) -> HeadworksLayer<impl Describe> {
    HeadworksLayer::new(limiter, |request, attributes| {
        attributes.push("service", "grpc");
        attributes.push("method", request.uri.path());
    })
}

/// Serves health behind `layer`: `Check` is a unary call, `Watch` a streaming one.
pub async fn serve(
    listener: TcpListener,
    layer: HeadworksLayer<impl Describe + Send + Sync + 'static>,
) -> Result<(), tonic::transport::Error> {
    let (_reporter, health) = tonic_health::server::health_reporter();
    Server::builder()
        .layer(layer)
        .add_service(health)
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
}
