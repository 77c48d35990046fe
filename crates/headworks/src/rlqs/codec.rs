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
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use futures_util::future::BoxFuture;
use headworks_core::quota::MOST_BUCKETS;
use prost::encoding::{DecodeContext, WireType, decode_varint, skip_field};
use prost::{DecodeError, Message};
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

use super::{Site, stream};

const METHOD: &str = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";
/// Largest message: a report of many more buckets than an Envoy may have, since there is nobody to give them up while it is on its own.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// Entries of one message that are kept. Those that are beyond what an Envoy may have are given up, so that its next reports are shorter.
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
    /// Entries that were left out: for their number, or since they could not be read.
    pub(super) left_out: usize,
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
        if tag != USAGES || wire_type != WireType::LengthDelimited {
            return self.reports.merge_field(tag, wire_type, buf, ctx);
        }
        if self.reports.bucket_quota_usages.len() >= MOST_ENTRIES {
            self.left_out += 1;
            return skip_field(wire_type, tag, buf, ctx);
        }
        match read(buf)? {
            Some(usage) => self.reports.bucket_quota_usages.push(usage),
            None => self.left_out += 1,
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.reports.encoded_len()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// One entry; `None` if it cannot be read by itself. Its texts may be what a client has sent, and no UTF-8: that must not end the stream
/// of all others.
fn read(buf: &mut impl Buf) -> Result<Option<BucketQuotaUsage>, DecodeError> {
    let length = usize::try_from(decode_varint(buf)?).unwrap_or(usize::MAX);
    // Of a message that ends within an entry the rest is none.
    Ok(BucketQuotaUsage::decode(buf.copy_to_bytes(length.min(buf.remaining()))).ok())
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
    use super::*;

    #[test]
    fn an_entry_that_is_no_text_is_left_out_and_no_other() {
        let good = BucketQuotaUsage { num_requests_allowed: 7, ..Default::default() };
        let mut bytes =
            RateLimitQuotaUsageReports { domain: "lab".to_owned(), bucket_quota_usages: vec![good.clone()] }
                .encode_to_vec();
        // A bucket id with the key "a" and a value of one byte that is no UTF-8.
        let entry: &[u8] = &[0x0a, 0x08, 0x0a, 0x06, 0x0a, 0x01, b'a', 0x12, 0x01, 0xff];
        bytes.extend([0x12, u8::try_from(entry.len()).unwrap()]);
        bytes.extend(entry);
        bytes.extend(
            RateLimitQuotaUsageReports { domain: String::new(), bucket_quota_usages: vec![good.clone()] }
                .encode_to_vec(),
        );
        let bounded = Bounded::decode(&*bytes).unwrap();
        assert_eq!((bounded.left_out, bounded.reports.bucket_quota_usages), (1, vec![good.clone(), good]));
    }

    #[test]
    fn a_message_of_entries_alone_keeps_no_more_than_may_be() {
        let usages = vec![BucketQuotaUsage::default(); MOST_BYTES / 2];
        let reports = RateLimitQuotaUsageReports { domain: "lab".to_owned(), bucket_quota_usages: usages };
        let bounded = Bounded::decode(&*reports.encode_to_vec()).unwrap();
        assert_eq!(bounded.left_out, MOST_BYTES / 2 - MOST_ENTRIES);
        assert_eq!(bounded.reports.domain, "lab");
        assert_eq!(bounded.reports.bucket_quota_usages.len(), MOST_ENTRIES);
    }

    #[test]
    fn a_report_of_all_buckets_that_may_be_is_read_whole() {
        let usages = vec![BucketQuotaUsage { num_requests_allowed: 7, ..Default::default() }; MOST_BUCKETS];
        let reports = RateLimitQuotaUsageReports { domain: String::new(), bucket_quota_usages: usages };
        let bounded = Bounded::decode(&*reports.encode_to_vec()).unwrap();
        assert!(bounded.left_out == 0 && bounded.reports == reports);
    }
}
