//! Envoy's external authorization, version 3 (`envoy.service.auth.v3`): one decision for each request of a proxy.

mod answer;
mod ask;

use std::sync::Arc;

use envoy_types::pb::envoy::service::auth::v3::authorization_server::Authorization;
use envoy_types::pb::envoy::service::auth::v3::{CheckRequest, CheckResponse};
use headworks_core::attributes::Attributes;
use tonic::{Request, Response, Status, async_trait};

use super::counts::GrpcCounts;
use crate::front::decider::Decider;
use ask::Asked;

pub(crate) use ask::{AuthzSettings, Fact};

/// The service.
pub(super) struct ExtAuthz {
    decider: Decider,
    settings: AuthzSettings,
    counts: Arc<GrpcCounts>,
}

impl ExtAuthz {
    pub(super) fn new(decider: Decider, settings: AuthzSettings, counts: Arc<GrpcCounts>) -> Self {
        Self { decider, settings, counts }
    }
}

#[async_trait]
impl Authorization for ExtAuthz {
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let context = request.into_inner().attributes.unwrap_or_default();
        let asked = match Asked::read(&context, &self.settings) {
            Ok(asked) => asked,
            Err(error) => {
                self.counts.ext_authz.count_error();
                return Err(Status::invalid_argument(error.to_string()));
            }
        };
        let decided = self.decider.decide(Attributes::new(&asked.pairs()), None).await;
        self.counts.ext_authz.count(decided.allowed);
        Ok(Response::new(answer::of(
            decided.allowed,
            decided.by.as_ref().map(|(_, told)| told),
            fastrand::f64(),
        )))
    }
}
