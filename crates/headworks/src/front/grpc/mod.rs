//! The agent's gRPC port: Envoy's rate limit service (RLS) and external authorization, with health and reflection.
//!
//! The two services that are asked for each request of a proxy are told apart by hand; the router is for the others.

mod authz;
mod counts;
mod rls;
mod unary;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, Response};
use envoy_types::pb::envoy::service::auth::v3::authorization_server::AuthorizationServer;
use futures_util::future::{Either, FutureExt as _};
use hyper::body::Incoming;
use hyper::service::Service;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::Service as _;

use super::decider::Decider;
use crate::failure::Failure;
use authz::ExtAuthz;
use rls::Rls;

pub(crate) use authz::{AuthzSettings, Fact};
pub(crate) use counts::GrpcCounts;

type AuthzServer = AuthorizationServer<ExtAuthz>;

/// Largest message. A proxy puts headers of its clients into it, of 60 KiB by its default: what they send should be read, and judged
/// by the bounds of values. All streams of a connection together may hold back a hundred of them, 12 MiB.
const MAX_MESSAGE_BYTES: usize = 128 * 1024;
/// Largest message to health and reflection: a name.
const MAX_QUESTION_BYTES: usize = 16 * 1024;
/// Time for a request to come in whole, and be answered: ends messages that trickle in.
const WHOLE: Duration = Duration::from_secs(10);
/// What the services are, for tools that ask.
const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/envoy.bin"));

/// The gRPC API as a service; all connections share one limiter.
#[derive(Clone)]
pub(crate) struct GrpcFront {
    rls: Rls,
    authz: AuthzServer,
    others: Routes,
}

impl GrpcFront {
    /// The services of a limiter, counted in `counts`, and what tells others whether they are ready.
    pub(crate) fn new(
        decider: &Decider,
        authz: AuthzSettings,
        counts: &Arc<GrpcCounts>,
    ) -> Result<(Self, Readiness), Failure> {
        let rls = Rls::new(decider.clone(), counts.clone());
        let authz = ExtAuthz::new(decider.clone(), authz, counts.clone());
        let (reporter, health) = tonic_health::server::health_reporter();
        let described = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let failed = |error| Failure::Failed(format!("the reflection service cannot be made: {error}"));
        let (v1, v1alpha) =
            (described().build_v1().map_err(failed)?, described().build_v1alpha().map_err(failed)?);
        let others = Routes::new(health.max_decoding_message_size(MAX_QUESTION_BYTES))
            .add_service(v1.max_decoding_message_size(MAX_QUESTION_BYTES))
            .add_service(v1alpha.max_decoding_message_size(MAX_QUESTION_BYTES))
            .prepare();
        let front =
            Self { rls, authz: AuthzServer::new(authz).max_decoding_message_size(MAX_MESSAGE_BYTES), others };
        Ok((front, Readiness(reporter)))
    }
}

/// Tells those who ask the health service whether this agent is ready.
pub(crate) struct Readiness(HealthReporter);

impl Readiness {
    /// Says what `ready` says, until nobody says it any more.
    pub(crate) async fn follow(self, mut ready: watch::Receiver<bool>) {
        loop {
            let status =
                if *ready.borrow_and_update() { ServingStatus::Serving } else { ServingStatus::NotServing };
            for service in ["", Rls::NAME, AuthzServer::NAME] {
                self.0.set_service_status(service, status).await;
            }
            if ready.changed().await.is_err() {
                return;
            }
        }
    }
}

/// The method of external authorization.
const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

type Answering = Either<
    Ready<Result<Response<Body>, Infallible>>,
    Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>,
>;

impl Service<Request<Incoming>> for GrpcFront {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let path = request.uri().path();
        if path == Rls::PATH {
            return in_time(self.rls.clone().call(request));
        }
        if path == CHECK {
            return in_time(self.authz.clone().call(request));
        }
        in_time(self.others.clone().call(request))
    }
}

/// Most answers are there at once, and need no clock.
fn in_time(answer: impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static) -> Answering {
    let mut answer = Box::pin(answer);
    if let Some(answer) = answer.as_mut().now_or_never() {
        return Either::Left(ready(answer));
    }
    Either::Right(Box::pin(async move {
        timeout(WHOLE, answer).await.unwrap_or_else(|_| {
            let late = Status::new(Code::DeadlineExceeded, "the request did not come in whole within 10 s");
            Ok(late.into_http())
        })
    }))
}
