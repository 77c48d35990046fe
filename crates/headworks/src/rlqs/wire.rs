//! Envoy's messages, and what they mean.

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::BucketAction;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::{
    AbandonAction, BucketAction as WireAction, QuotaAssignmentAction,
};
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{BucketId as WireId, RateLimitQuotaResponse};
use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::{BlanketRule, Strategy as WireStrategy};
use envoy_types::pb::envoy::r#type::v3::{RateLimitStrategy, TokenBucket};
use envoy_types::pb::google::protobuf::{Duration as WireDuration, UInt32Value};
use headworks_core::quota::{Action, BucketId, DOMAIN, LASTS, Strategy, Usage};
use tonic::Status;

use super::codec::Bounded;

/// Bytes of a domain.
const MOST_DOMAIN: usize = 128;
/// Pairs in the name of a bucket.
const MOST_PAIRS: usize = 32;
/// Requests that a report tells of one bucket. No proxy has so many in five seconds, nor in an hour.
const MOST_REQUESTS: u64 = 100_000_000_000;
/// Answers in one message: as many as hardly take a quarter of a megabyte.
const ANSWERS: usize = 500;

/// Why a message makes no sense, so that its stream is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("the first report must name a domain of 1 to {MOST_DOMAIN} bytes without control characters")]
    Domain,
    #[error("a stream has one domain: close it, and open another one for another domain")]
    OtherDomain,
}

/// Why a bucket is refused. The others of its message are not: Envoy reports all it has in each, and made them from what its
/// clients send, so that one client could end the stream for all again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsound {
    #[error("a bucket needs an id with 1 to {MOST_PAIRS} keys that are not empty")]
    Id,
    #[error("keys and values of a bucket id must have no control characters")]
    Control,
    #[error("a bucket id must have no key `{DOMAIN}`: that is the domain of the filter")]
    DomainKey,
    #[error("a report tells of more than {MOST_REQUESTS} requests in one bucket")]
    Requests,
}

impl From<Malformed> for Status {
    fn from(malformed: Malformed) -> Self {
        Status::invalid_argument(malformed.to_string())
    }
}

/// The domain of a stream, by its first message.
pub(super) fn domain(first: &Bounded) -> Result<String, Malformed> {
    let domain = &first.reports.domain;
    let is_sound = !domain.is_empty() && domain.len() <= MOST_DOMAIN && !domain.chars().any(char::is_control);
    if is_sound { Ok(domain.clone()) } else { Err(Malformed::Domain) }
}

/// What a report tells of one bucket, or why that is refused.
pub(super) type Told = (BucketId, Result<Usage, Unsound>);

/// What a message on a stream of this domain tells: of nothing, where an Envoy is idle.
pub(super) fn usages(message: Bounded, domain: &str) -> Result<Vec<Told>, Malformed> {
    let reports = message.reports;
    // Later ones need not name it, and Envoy does.
    if !reports.domain.is_empty() && reports.domain != domain {
        return Err(Malformed::OtherDomain);
    }
    Ok(reports.bucket_quota_usages.into_iter().map(told).collect())
}

fn told(mut told: BucketQuotaUsage) -> Told {
    // Its keys have no order of their own.
    let mut id: BucketId =
        told.bucket_id.take().map(|id| id.bucket.into_iter().collect()).unwrap_or_default();
    id.sort();
    let usage = is_sound(&id).and_then(|()| usage(&told));
    (id, usage)
}

fn usage(told: &BucketQuotaUsage) -> Result<Usage, Unsound> {
    // Whole seconds, and none for a bucket that has just come to be: good for nothing else.
    let is_new = told.time_elapsed.is_none_or(|elapsed| (elapsed.seconds, elapsed.nanos) == (0, 0));
    let usage = Usage { allowed: told.num_requests_allowed, denied: told.num_requests_denied, is_new };
    if usage.allowed > MOST_REQUESTS || usage.denied > MOST_REQUESTS {
        return Err(Unsound::Requests);
    }
    Ok(usage)
}

fn is_sound(id: &[(String, String)]) -> Result<(), Unsound> {
    if id.is_empty() || id.len() > MOST_PAIRS || id.iter().any(|(key, _)| key.is_empty()) {
        return Err(Unsound::Id);
    }
    if id.iter().any(|(key, value)| key.chars().chain(value.chars()).any(char::is_control)) {
        return Err(Unsound::Control);
    }
    if id.iter().any(|(key, _)| key == DOMAIN) {
        return Err(Unsound::DomainKey);
    }
    Ok(())
}

/// What Envoy is to do, in messages that are not too long.
pub(super) fn responses(actions: Vec<(BucketId, Action)>) -> Vec<RateLimitQuotaResponse> {
    let actions: Vec<BucketAction> = actions.into_iter().map(action).collect();
    actions.chunks(ANSWERS).map(|some| RateLimitQuotaResponse { bucket_action: some.to_vec() }).collect()
}

fn action((id, action): (BucketId, Action)) -> BucketAction {
    let action = match action {
        Action::Abandon => WireAction::AbandonAction(AbandonAction {}),
        Action::Assign(strategy) => WireAction::QuotaAssignmentAction(QuotaAssignmentAction {
            // Without one Envoy takes nothing of it. It reads whole seconds.
            assignment_time_to_live: seconds(LASTS.as_secs()),
            rate_limit_strategy: Some(RateLimitStrategy { strategy: Some(encode(strategy)) }),
        }),
    };
    BucketAction { bucket_id: Some(WireId { bucket: id.into_iter().collect() }), bucket_action: Some(action) }
}

/// Envoy knows no rate by time unit, and does nothing at all where the strategy is missing.
fn encode(strategy: Strategy) -> WireStrategy {
    match strategy {
        Strategy::AllowAll => WireStrategy::BlanketRule(BlanketRule::AllowAll.into()),
        Strategy::DenyAll => WireStrategy::BlanketRule(BlanketRule::DenyAll.into()),
        Strategy::Tokens(tokens) => WireStrategy::TokenBucket(TokenBucket {
            max_tokens: tokens.most,
            tokens_per_fill: Some(UInt32Value { value: tokens.per_fill }),
            fill_interval: seconds(tokens.seconds.into()),
        }),
    }
}

fn seconds(seconds: u64) -> Option<WireDuration> {
    Some(WireDuration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 })
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports;
    use headworks_core::quota::Tokens;

    use super::*;

    fn told(pairs: &[(&str, &str)], requests: u64) -> BucketQuotaUsage {
        let bucket = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        BucketQuotaUsage {
            bucket_id: Some(WireId { bucket }),
            time_elapsed: seconds(4),
            num_requests_allowed: requests,
            num_requests_denied: 0,
        }
    }

    fn read(domain: &str, told: Vec<BucketQuotaUsage>) -> Result<Vec<Told>, Malformed> {
        let reports = RateLimitQuotaUsageReports { domain: domain.to_owned(), bucket_quota_usages: told };
        usages(Bounded { reports, left_out: 0 }, "lab")
    }

    #[test]
    fn keys_come_in_an_order_of_their_own() {
        let read = read("lab", vec![told(&[("user", "u"), ("rule", "r")], 7)]).unwrap();
        let [rule, user] = ["rule", "user"].map(|key| (key.to_owned(), key[..1].to_owned()));
        assert_eq!(read[0].0, [rule, user]);
        assert_eq!(read[0].1, Ok(Usage { allowed: 7, denied: 0, is_new: false }));
    }

    #[test]
    fn a_bucket_that_has_just_come_to_be_tells_no_time() {
        for elapsed in [None, seconds(0)] {
            let new = BucketQuotaUsage { time_elapsed: elapsed, ..told(&[("a", "b")], 1) };
            assert!(read("", vec![new]).unwrap()[0].1.unwrap().is_new);
        }
    }

    #[test]
    fn what_makes_no_sense_is_told_by_its_cause() {
        let unsound = |told| read("lab", vec![told]).unwrap()[0].1.unwrap_err();
        let one = |pairs: &[(&str, &str)]| unsound(told(pairs, 1));
        assert_eq!(read("lab", Vec::new()), Ok(Vec::new()), "an Envoy that is idle");
        assert_eq!(read("other", vec![told(&[("a", "b")], 1)]), Err(Malformed::OtherDomain));
        assert_eq!(one(&[]), Unsound::Id);
        assert_eq!(one(&[("", "b")]), Unsound::Id);
        assert_eq!(one(&[("a", "b\0")]), Unsound::Control);
        assert_eq!(one(&[("a\n", "b")]), Unsound::Control);
        assert_eq!(one(&[("domain", "b")]), Unsound::DomainKey);
        assert_eq!(unsound(told(&[("a", "b")], u64::MAX)), Unsound::Requests);
        assert_eq!(unsound(BucketQuotaUsage::default()), Unsound::Id);
        let some = read("lab", vec![told(&[("a", "b\t")], 1), told(&[("a", "b")], 1)]).unwrap();
        assert!(some[0].1.is_err() && some[1].1.is_ok(), "one client does not speak for the others");
        let names: Vec<String> = (0..=MOST_PAIRS).map(|n| n.to_string()).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(one(&pairs), Unsound::Id);
    }

    #[test]
    fn a_stream_begins_with_a_domain() {
        let first = |domain: &str| {
            let reports = RateLimitQuotaUsageReports { domain: domain.to_owned(), ..Default::default() };
            super::domain(&Bounded { reports, left_out: 0 })
        };
        assert_eq!(first("lab").as_deref(), Ok("lab"));
        for domain in ["", "a\nb", &"x".repeat(129)] {
            assert_eq!(first(domain), Err(Malformed::Domain));
        }
    }

    #[test]
    fn every_assignment_has_whole_seconds_and_a_strategy_that_envoy_knows() {
        let tokens = Strategy::Tokens(Tokens { most: 50, per_fill: 401, seconds: 2 });
        for strategy in [Strategy::AllowAll, Strategy::DenyAll, tokens] {
            let WireAction::QuotaAssignmentAction(assigned) =
                action((Vec::new(), Action::Assign(strategy))).bucket_action.unwrap()
            else {
                panic!("no assignment")
            };
            assert_eq!(assigned.assignment_time_to_live, seconds(15));
            if let WireStrategy::TokenBucket(bucket) = assigned.rate_limit_strategy.unwrap().strategy.unwrap()
            {
                assert_eq!(bucket.fill_interval, seconds(2));
                assert_eq!((bucket.max_tokens, bucket.tokens_per_fill.unwrap().value), (50, 401));
            }
        }
    }

    #[test]
    fn many_answers_are_several_messages() {
        let actions = vec![(vec![("a".to_owned(), "b".to_owned())], Action::Abandon); 1001];
        let lengths: Vec<usize> =
            responses(actions).iter().map(|response| response.bucket_action.len()).collect();
        assert_eq!(lengths, [500, 500, 1]);
        assert!(responses(Vec::new()).is_empty());
    }
}
