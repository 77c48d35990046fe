//! The example of axum, asked over real connections.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

#[path = "../examples/axum.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example is a program: here its parts are used")]
mod example;
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use headworks_tower::{Describe, HeadworksLayer};
use http_body_util::Empty;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use support::limiter;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const SERVED: &str = "x-served";

async fn serve(layer: HeadworksLayer<impl Describe + Clone + Send + Sync + 'static>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(async || ([(SERVED, "yes")], "it passed"))).layer(layer);
    tokio::spawn(async move { example::serve(listener, router).await });
    address
}

async fn connect(to: SocketAddr) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(to).await.unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn ask(
    sender: &mut SendRequest<Empty<Bytes>>,
    forwarded_for: Option<&str>,
) -> Response<hyper::body::Incoming> {
    let mut request = Request::get("/").header("host", "test");
    if let Some(address) = forwarded_for {
        request = request.header("x-forwarded-for", address);
    }
    sender.ready().await.unwrap();
    sender.send_request(request.body(Empty::new()).unwrap()).await.unwrap()
}

fn header<'r, B>(response: &'r Response<B>, name: &str) -> Option<&'r str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

/// All requests of a connection; how many passed. Each of the others is a refusal in all its parts.
async fn ask_many(address: SocketAddr, times: usize, start: Arc<Barrier>) -> usize {
    let mut sender = connect(address).await;
    start.wait().await;
    let mut passed = 0;
    for _ in 0..times {
        let response = ask(&mut sender, None).await;
        if response.status() == 200 {
            passed += 1;
        } else {
            assert_eq!(response.status(), 429);
            assert_eq!(header(&response, SERVED), None, "a refused request reached the service");
            assert_eq!(header(&response, "retry-after"), Some("1"));
            assert_eq!(header(&response, "ratelimit"), Some("\"web\";r=0;t=1"));
            assert_eq!(header(&response, "ratelimit-policy"), Some("\"web\";q=5;w=1"));
        }
    }
    passed
}

#[tokio::test]
async fn a_hundred_connections_share_one_limit() {
    let limits = "limits: [{name: web, match: {service: web}, rate: 5/second, burst: 5, enforcement: exact}]";
    let address = serve(example::limited(limiter(limits))).await;
    let (start, mut connections) = (Arc::new(Barrier::new(100)), JoinSet::new());
    for _ in 0..100 {
        connections.spawn(ask_many(address, 15, start.clone()));
    }
    let began = Instant::now();
    let passed: usize = connections.join_all().await.into_iter().sum();
    // 5 at once, and 5 a second from then on.
    let most = 5.0 + 5.0 * began.elapsed().as_secs_f64();
    assert!(passed >= 5 && passed as f64 <= most, "{passed} of 1500 passed, of {most} that may");
}

#[tokio::test]
async fn two_routers_of_one_layer_share_a_limit() {
    let limits = "limits: [{name: web, per: [client], rate: 5/hour, burst: 5, enforcement: exact}]";
    let layer = example::limited(limiter(limits));
    let routers = [serve(layer.clone()).await, serve(layer).await];
    let mut passed = 0;
    for (turn, address) in routers.into_iter().cycle().take(20).enumerate() {
        // A header that nobody trusts makes no other client.
        let response = ask(&mut connect(address).await, Some(&format!("203.0.113.{turn}"))).await;
        passed += usize::from(response.status() == 200);
    }
    assert_eq!(passed, 5);
}
