//! The service, with a bound on what one message may hold.
//!
//! The generated server would decode whatever has room in a message before anyone can look at it, and a list of nothing but empty
//! entries takes fifty times its size in memory.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http;
use bytes::{Buf, BufMut};
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_server::SERVICE_NAME;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use futures_util::future::BoxFuture;
use headworks_core::quota::MOST_BUCKETS;
use prost::encoding::{DecodeContext, WireType, skip_field};
use prost::{DecodeError, Message};
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

use super::{Site, stream};

const METHOD: &str = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";
/// Largest message: a report of as many buckets as an Envoy may have, whose names take a quarter of a megabyte together.
const MOST_BYTES: usize = 512 * 1024;
/// Entries of one message. An Envoy whose buckets are about to be given up has a few more than it may.
const MOST_ENTRIES: usize = 2 * MOST_BUCKETS;
/// The field of [`RateLimitQuotaUsageReports`] that repeats.
const USAGES: u32 = 2;

/// What Envoy sends.
pub(super) type Reports = Streaming<Bounded>;
/// What Envoy is sent.
pub(super) type Answers = ReceiverStream<Result<RateLimitQuotaResponse, Status>>;

/// A message of which no more entries are kept than may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounded {
    pub(super) reports: RateLimitQuotaUsageReports,
    /// Entries were left out.
    pub(super) is_overfull: bool,
}

impl Message for Bounded {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.reports.encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag == USAGES && self.reports.bucket_quota_usages.len() >= MOST_ENTRIES {
            self.is_overfull = true;
            return skip_field(wire_type, tag, buf, ctx);
        }
        self.reports.merge_field(tag, wire_type, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        self.reports.encoded_len()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The server of Envoys.
#[derive(Clone)]
pub(super) struct Server(pub(super) Arc<Site>);

impl NamedService for Server {
    const NAME: &'static str = SERVICE_NAME;
}

impl Service<http::Request<Body>> for Server {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let site = self.0.clone();
        Box::pin(async move {
            if request.uri().path() != METHOD {
                return Ok(Status::unimplemented("the one method here is StreamRateLimitQuotas").into_http());
            }
            let codec = ProstCodec::<RateLimitQuotaResponse, Bounded>::default();
            let mut server = Grpc::new(codec).apply_max_message_size_config(Some(MOST_BYTES), None);
            Ok(server.streaming(Method(site), request).await)
        })
    }
}

struct Method(Arc<Site>);

impl StreamingService<Bounded> for Method {
    type Response = RateLimitQuotaResponse;
    type ResponseStream = Answers;
    type Future = Ready<Result<Response<Answers>, Status>>;

    fn call(&mut self, request: Request<Reports>) -> Self::Future {
        ready(stream::open(&self.0, request).map(Response::new))
    }
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;

    use super::*;

    #[test]
    fn a_message_of_entries_alone_keeps_no_more_than_may_be() {
        let usages = vec![BucketQuotaUsage::default(); MOST_BYTES / 2];
        let reports = RateLimitQuotaUsageReports { domain: "lab".to_owned(), bucket_quota_usages: usages };
        let bounded = Bounded::decode(&*reports.encode_to_vec()).unwrap();
        assert!(bounded.is_overfull);
        assert_eq!(bounded.reports.domain, "lab");
        assert_eq!(bounded.reports.bucket_quota_usages.len(), MOST_ENTRIES);
    }

    #[test]
    fn a_report_of_all_buckets_that_may_be_is_read_whole() {
        let usages = vec![BucketQuotaUsage { num_requests_allowed: 7, ..Default::default() }; MOST_BUCKETS];
        let reports = RateLimitQuotaUsageReports { domain: String::new(), bucket_quota_usages: usages };
        let bounded = Bounded::decode(&*reports.encode_to_vec()).unwrap();
        assert!(!bounded.is_overfull && bounded.reports == reports);
    }
}
