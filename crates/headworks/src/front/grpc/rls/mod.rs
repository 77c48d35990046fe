//! Envoy's rate limit service, version 3 (`envoy.service.ratelimit.v3`).
//!
//! Each descriptor is a set of attributes, decided like any other request; all of them together are one: it passes if all do. When
//! one is refused, those before it are given back what exact limits charged them, and those behind it are only looked at.

mod answer;
mod ask;
mod instead;
mod wire;

use std::convert::Infallible;
use std::sync::Arc;

use axum::http;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code as RateLimitCode;
use headworks_agent::Remaining;
use headworks_agent::told::{Basis, Told};
use headworks_core::exact::Look;
use hyper::body::Incoming;
use smallvec::SmallVec;
use tonic::body::Body;
use tonic::{Code, Status};

use super::counts::GrpcCounts;
use super::unary;
use crate::front::decider::{Decided, Decider};
use answer::Said;
use ask::{Asked, Hits, Instead};
use instead::Brought;
use wire::Request;

/// The service.
#[derive(Clone)]
pub(super) struct Rls {
    decider: Decider,
    brought: Arc<Brought>,
    counts: Arc<GrpcCounts>,
}

impl Rls {
    pub(super) const NAME: &str = "envoy.service.ratelimit.v3.RateLimitService";
    pub(super) const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

    pub(super) fn new(decider: Decider, counts: Arc<GrpcCounts>) -> Self {
        Self { decider, brought: Arc::new(Brought::new()), counts }
    }

    /// Answers a request to its method.
    pub(super) async fn call(
        self,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Body>, Infallible> {
        let answered = match unary::read::<Request>(request).await {
            Ok(mut asked) => {
                asked.replace_unsound();
                self.answer(&asked).await
            }
            // It repeats what a client has sent in each of its descriptors, and an error would let that client pass.
            Err(status) if status.code() == Code::OutOfRange => Ok(self.too_much()),
            Err(status) => Err(status),
        };
        match &answered {
            Ok((allowed, _)) => self.counts.rls.count(*allowed),
            Err(_) => self.counts.rls.count_error(),
        }
        Ok(answered.map_or_else(Status::into_http, |(_, response)| unary::answer(&response)))
    }

    /// The answer to a request that is longer than is read.
    fn too_much(&self) -> (bool, RateLimitResponse) {
        let passes = self.decider.limiter.is_shadow_all();
        let code = if passes { RateLimitCode::Ok } else { RateLimitCode::OverLimit };
        (passes, RateLimitResponse { overall_code: code.into(), ..RateLimitResponse::default() })
    }

    /// Whether the request passes, and the answer.
    async fn answer(&self, request: &Request) -> Result<(bool, RateLimitResponse), Status> {
        let asked = ask::read(request).map_err(|error| Status::invalid_argument(error.to_string()))?;
        if self.decider.shared.is_some() && asked.iter().any(|asked| matches!(asked.hits, Hits::GiveBack(_)))
        {
            let text =
                "this agent counts exact limits in a store, which takes nothing back: send no negative hits";
            return Err(Status::unimplemented(text));
        }
        let said = self.decide_all(&asked).await;
        Ok((said.iter().all(|said| said.passes), answer::of(&said, fastrand::f64())))
    }

    /// What is said to each descriptor.
    async fn decide_all(&self, asked: &[Asked<'_>]) -> SmallVec<[Said; 1]> {
        let mut said: SmallVec<[Said; 1]> = SmallVec::new();
        for one in asked {
            said.push(self.decide(one, one.hits).await);
            if said.last().is_some_and(|said| !said.passes) {
                break;
            }
        }
        if said.last().is_some_and(|said| !said.passes) {
            self.undo(asked, &mut said).await;
        }
        said
    }

    /// The last of those that were decided is refused, and with it the request: what it took is given back, and the others are looked at.
    async fn undo(&self, asked: &[Asked<'_>], said: &mut SmallVec<[Said; 1]>) {
        let refused = said.len() - 1;
        for one in &asked[..refused] {
            if let Hits::Take(hits) = one.hits {
                self.decide(one, Hits::GiveBack(hits)).await;
            }
        }
        for (place, one) in asked.iter().enumerate().filter(|(place, _)| *place != refused) {
            let seen = self.decide(one, if one.hits == Hits::None { Hits::None } else { Hits::Look }).await;
            match said.get_mut(place) {
                // What drops by ratio cannot be looked at: it was decided.
                Some(before) if seen.by.is_some() => *before = seen,
                Some(_) => {}
                None => said.push(seen),
            }
        }
    }

    async fn decide(&self, asked: &Asked<'_>, hits: Hits) -> Said {
        if let Some(instead) = asked.instead.as_ref().filter(|_| hits != Hits::None)
            && let Some(look) = self.brought.check(asked.attributes(), instead, hits)
        {
            let passes = look.passes || self.decider.limiter.is_shadow_all();
            return Said::by_request(*instead, told(instead, &look), passes);
        }
        match hits {
            Hits::None => Said::nothing(),
            Hits::Take(hits) => Said::by_limits(self.decider.decide(asked.attributes(), hits).await),
            Hits::Look => Said::by_limits(self.look(asked).await),
            Hits::Excess => Said { passes: false, ..Said::by_limits(self.look(asked).await) },
            Hits::GiveBack(hits) => {
                self.decider.limiter.give_back(asked.attributes(), hits);
                Said { passes: true, ..Said::by_limits(self.look(asked).await) }
            }
        }
    }

    /// What exact limits would say to a request; one that meets none passes.
    async fn look(&self, asked: &Asked<'_>) -> Decided {
        let seen = self.decider.decide(asked.attributes(), Some(0)).await;
        Decided { allowed: seen.allowed || seen.saw_nothing, ..seen }
    }
}

fn told(instead: &Instead, look: &Look) -> Told {
    let Look { remaining, retry_after, .. } = *look;
    let counted =
        Remaining { rate: instead.rate, limit: Some(instead.amount.into()), remaining, retry_after };
    Told::counted(look.passes, counted, Basis::Counted)
}

#[cfg(test)]
mod tests;
