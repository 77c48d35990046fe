//! The example of tonic, called over real connections.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

#[path = "../examples/tonic.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example is a program: here its parts are used")]
mod example;
mod support;

use std::time::Duration;

use support::limiter;
use tokio::net::TcpListener;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

async fn serve(limits: &str) -> HealthClient<Channel> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let layer = example::limited(limiter(limits));
    tokio::spawn(async move { example::serve(listener, layer).await });
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

fn pushback(status: &Status) -> i64 {
    status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap().parse().unwrap()
}

/// A refusal that the clients of gRPC understand: no fault, and when to come back.
fn assert_refused(status: &Status) {
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "rate limit calls exceeded");
    let wait = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    // Five a minute: one in 12 s, and no client is sent away for more than the minute.
    assert!(wait > Duration::from_secs(11) && wait <= Duration::from_secs(60), "{wait:?}");
    let pushback = u64::try_from(pushback(status)).unwrap();
    assert_eq!(u128::from(pushback), wait.as_nanos().div_ceil(1_000_000));
}

#[tokio::test]
async fn unary_and_streaming_calls_are_refused_as_exhausted() {
    let mut client =
        serve("limits: [{name: calls, per: [method], rate: 5/minute, burst: 5, enforcement: exact}]").await;
    let asked = HealthCheckRequest::default();
    for _ in 0..5 {
        client.check(asked.clone()).await.unwrap();
    }
    assert_refused(&client.check(asked.clone()).await.unwrap_err());

    // Another method has another bucket.
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut stream = client.watch(asked.clone()).await.unwrap().into_inner();
        assert!(stream.message().await.unwrap().is_some());
        streams.push(stream);
    }
    assert_refused(&client.watch(asked).await.unwrap_err());
}

#[tokio::test]
async fn who_is_banned_is_told_not_to_try_again() {
    let mut client = serve("limits: [{name: calls, rate: 0/second, enforcement: exact}]").await;
    let status = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!((status.code(), pushback(&status)), (Code::ResourceExhausted, -1));
    assert!(status.get_details_retry_info().is_none());
}
