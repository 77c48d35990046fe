//! Whatever is sent in the place of Envoy: an error or a report that the tree believes, never a panic.

use std::time::Duration;

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{BucketId, RateLimitQuotaUsageReports};
use headworks_core::agent::Identity;
use headworks_core::message::Incarnation;
use headworks_core::quota::{DOMAIN, Proxy};
use headworks_core::units::Moment;
use prost::Message;

use super::codec::Bounded;
use super::wire;

const WORDS: [&[u8]; 8] = [
    b"\x12\x00",
    b"\x0a\x03lab",
    b"\x12\x04\x0a\x02\x0a\x00",
    b"\xff\xff\xff\xff\x0f",
    b"domain",
    b"\0",
    b"\n",
    b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
];

fn message(domain: &str, pairs: &[(&str, &str)], buckets: usize) -> Vec<u8> {
    let bucket = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let usage = BucketQuotaUsage {
        bucket_id: Some(BucketId { bucket }),
        num_requests_allowed: 300,
        num_requests_denied: 7,
        ..BucketQuotaUsage::default()
    };
    let reports =
        RateLimitQuotaUsageReports { domain: domain.to_owned(), bucket_quota_usages: vec![usage; buckets] };
    reports.encode_to_vec()
}

fn proxy() -> Proxy {
    let [node, zone, region, version] = ["envoy", "a", "", "1"].map(str::to_owned);
    let identity = Identity { node, incarnation: Incarnation(1), zone, region, version };
    Proxy::new(identity, "lab".to_owned(), Duration::from_secs(60), Moment::default())
}

/// What becomes of a message, in a few words.
fn outcome(input: &[u8]) -> String {
    let first = match Bounded::decode(input) {
        Ok(first) => first,
        Err(_) => return "not read".to_owned(),
    };
    let told = wire::domain(&first).and_then(|domain| wire::usages(first, &domain));
    let usages = match told {
        Ok(usages) => usages,
        Err(malformed) => return malformed.to_string(),
    };
    let (mut proxy, mut refused) = (proxy(), 0);
    for (second, (id, usage)) in (1..).zip(usages) {
        let Ok(usage) = usage else {
            refused += 1;
            continue;
        };
        assert!(!id.is_empty() && id.is_sorted() && id.iter().all(|(key, _)| key != DOMAIN));
        refused += u32::from(proxy.usage(id, usage, Moment::after(Duration::from_secs(second))).is_err());
    }
    let report = proxy.report(Moment::after(Duration::from_secs(3600))).unwrap();
    assert!(report.entries.iter().all(|entry| entry.counts.are_sound()));
    let answers = wire::responses(proxy.actions(Moment::after(Duration::from_secs(3600))));
    format!("{} refused, {} answers", refused.min(2), answers.len())
}

#[test]
fn no_message_of_an_envoy_makes_the_server_panic() {
    let long = "x".repeat(3000);
    let corpus = vec![
        message("lab", &[("service", "checkout")], 1),
        message("lab", &[("rule", "r"), ("user", "u")], 3),
        message("", &[("a", "b")], 1),
        message("lab", &[], 1),
        message("lab", &[("a", &long)], 2),
        message("lab", &[("domain", "b")], 1),
    ];
    let ran = headworks_fuzz::run("reports of Envoy", corpus, &WORDS, outcome);
    assert!(ran.inputs > 1000 && ran.kinds > 5, "{ran:?}");
}
