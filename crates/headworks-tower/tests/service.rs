//! The layer around services that are not ready, or fail.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod support;

use std::future::{Ready, poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use headworks_tower::{Answers, Describe, Headworks, HeadworksLayer, Refused};
use http::{Request, Response};
use support::limiter;
use tonic::Code;
use tower::{Layer, Service, ServiceExt};

const FIVE: &str = "limits: [{name: five, rate: 5/hour, burst: 5, enforcement: exact}]";

/// A service that counts its calls, and is ready when told so.
#[derive(Clone, Debug, Default)]
struct Inner {
    ready: Arc<AtomicBool>,
    broken: bool,
    calls: Arc<AtomicUsize>,
    /// It was asked whether it is ready and said so, and was not called since.
    may_be_called: bool,
}

impl Service<Request<()>> for Inner {
    type Response = Response<String>;
    type Error = &'static str;
    type Future = Ready<Result<Response<String>, &'static str>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        if self.broken {
            return Poll::Ready(Err("broken"));
        }
        self.may_be_called = self.ready.load(Relaxed);
        if self.may_be_called {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.may_be_called), "called without being ready");
        self.calls.fetch_add(1, Relaxed);
        ready(Ok(Response::new("it passed".to_owned())))
    }
}

fn layer(limits: &str) -> HeadworksLayer<impl Describe + Clone> {
    HeadworksLayer::new(limiter(limits), |request, attributes| {
        attributes.push_header("key", &request.headers, "x-key");
    })
}

async fn call<D: Describe>(service: &mut Headworks<Inner, D>) -> Response<String> {
    service.ready().await.unwrap().call(Request::new(())).await.unwrap()
}

#[tokio::test]
async fn refusals_need_no_service_that_is_ready() {
    let inner = Inner::default();
    let mut service = layer("limits: [{name: ban, rate: 0/second, enforcement: exact}]").layer(inner.clone());
    let response = call(&mut service).now_or_never().unwrap();
    assert_eq!(response.status(), 429);
    assert!(response.headers().get("retry-after").is_none(), "no wait ends a ban");
    assert_eq!(inner.calls.load(Relaxed), 0);
}

#[tokio::test]
async fn a_request_that_passes_waits_for_the_service_to_be_ready() {
    let inner = Inner::default();
    let mut service = layer(FIVE).layer(inner.clone());
    let mut waiting = Box::pin(service.ready().await.unwrap().call(Request::new(())));
    assert!(poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
    assert_eq!(inner.calls.load(Relaxed), 0);
    inner.ready.store(true, Relaxed);
    assert_eq!(waiting.await.unwrap().body(), "it passed");
    // From now on it is asked beforehand, as tower wants it.
    assert_eq!(call(&mut service).await.body(), "it passed");
    assert_eq!(inner.calls.load(Relaxed), 2);
}

#[tokio::test]
async fn a_refusal_leaves_the_service_ready_for_the_next_request() {
    let inner = Inner { ready: Arc::new(true.into()), ..Inner::default() };
    let limits = "limits: [{name: banned, match: {key: x}, rate: 0/second, enforcement: exact}]";
    let mut service = layer(limits).layer(inner.clone());
    service.ready().await.unwrap();
    let banned = Request::builder().header("x-key", "x").body(()).unwrap();
    assert_eq!(service.call(banned).await.unwrap().status(), 429);
    inner.ready.store(false, Relaxed);
    assert_eq!(call(&mut service).now_or_never().unwrap().status(), 200);
}

#[tokio::test]
async fn a_service_that_fails_to_be_ready_says_so() {
    let mut service = layer(FIVE).layer(Inner { broken: true, ..Inner::default() });
    assert_eq!(service.ready().await.unwrap_err(), "broken");
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_behind() {
    let inner = Inner::default();
    let mut service = layer(FIVE).layer(inner.clone());
    for _ in 0..3 {
        drop(service.ready().await.unwrap().call(Request::new(())));
    }
    inner.ready.store(true, Relaxed);
    let mut passed = 0;
    for _ in 0..10 {
        passed += usize::from(call(&mut service).await.status() == 200);
    }
    // The three were charged, and nobody waits in their place.
    assert_eq!((passed, inner.calls.load(Relaxed)), (2, 2));
}

#[tokio::test]
async fn shadow_lets_everything_pass_and_counts() {
    let inner = Inner { ready: Arc::new(true.into()), ..Inner::default() };
    let limiter = limiter("limits: [{name: s, rate: 5/hour, burst: 5, enforcement: exact, mode: shadow}]");
    let mut service = HeadworksLayer::new(limiter.clone(), |_, _| {}).layer(inner.clone());
    for _ in 0..20 {
        assert_eq!(call(&mut service).await.status(), 200);
    }
    assert_eq!(limiter.stats().limits[0].counts.would_drop, 15);
}

#[tokio::test]
async fn layers_around_are_told_which_limit_refused() {
    let inner = Inner { ready: Arc::new(true.into()), ..Inner::default() };
    let mut service = layer(FIVE).layer(inner);
    for _ in 0..5 {
        assert!(call(&mut service).await.extensions().get::<Refused>().is_none());
    }
    let response = call(&mut service).await;
    let refused = response.extensions().get::<Refused>().unwrap();
    let seconds: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert_eq!(refused.limit.as_ref().unwrap().name.as_ref(), "five");
    assert_eq!(refused.retry_after.unwrap().as_secs(), seconds);
    // One in 720 s.
    assert!((700..=3600).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn responses_tell_of_limits_where_that_is_wanted() {
    let inner = Inner { ready: Arc::new(true.into()), ..Inner::default() };
    let plain = call(&mut layer(FIVE).layer(inner.clone())).await;
    assert!(plain.headers().is_empty());
    let answers = Answers { rate_limit_fields: true, ..Answers::default() };
    let told = call(&mut layer(FIVE).answering(answers).layer(inner)).await;
    assert_eq!(told.headers()["ratelimit"], "\"five\";r=4");
    assert_eq!(told.headers()["ratelimit-policy"], "\"five\";q=5;w=3600");
}

#[tokio::test]
async fn a_refused_call_of_grpc_is_a_status_without_a_body() {
    let answers = Answers { grpc_code: Code::Unavailable, ..Answers::default() };
    let ban = "limits: [{name: ban, rate: 0/second, enforcement: exact}]";
    for (answers, code) in [(Answers::default(), "8"), (answers, "14")] {
        for content_type in ["application/grpc", "application/grpc+proto", "application/grpc-web+proto"] {
            let mut service = layer(ban).answering(answers).layer(Inner::default());
            let request = Request::builder().header("content-type", content_type).body(()).unwrap();
            let response = service.ready().await.unwrap().call(request).await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["grpc-status"], code);
            assert_eq!(response.headers()["content-type"], content_type);
            assert!(response.body().is_empty());
        }
    }
}
