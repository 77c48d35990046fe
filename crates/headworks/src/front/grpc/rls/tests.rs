use std::time::{Duration, Instant};

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use headworks_agent::{Agent, Limiter};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::wire::{Descriptor, Entry};
use super::*;

const OK: i32 = Code::Ok as i32;
const OVER: i32 = Code::OverLimit as i32;

const LIMITS: &str = "
limits:
  - {name: per-user, match: {domain: edge}, per: [user], rate: 100/minute, enforcement: exact}
  - {name: per-path, match: {domain: edge}, per: [path], rate: 2/hour, enforcement: exact, algorithm: fixed_window}
  - {name: rehearsed, match: {domain: edge}, per: [team], rate: 1/day, enforcement: exact, mode: shadow}
  - {name: free, match: {plan: free}, rate: unlimited, enforcement: exact}
  - {name: banned, match: {user: mallory}, rate: 0/second, enforcement: exact}
";

/// The service over an agent that stands alone, with these limits in force.
async fn rls() -> Rls {
    let (_, limits) = watch::channel((1, Arc::new(headworks_core::limits::parse(LIMITS).unwrap())));
    let agent = Agent::builder("a", "z").standalone(limits).build();
    let limiter = agent.limiter();
    tokio::spawn(agent.run(CancellationToken::new()));
    let began = Instant::now();
    while limiter.stats().limits.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(5), "no limits came into force");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Rls::new(Decider::new(limiter, None), Arc::default())
}

fn limiter(rls: &Rls) -> &Limiter {
    &rls.decider.limiter
}

fn descriptor(entries: &[(&str, &str)]) -> Descriptor {
    let entry = |(key, value): &(&str, &str)| Entry {
        key: (*key).to_owned().into(),
        value: (*value).to_owned().into(),
    };
    Descriptor { entries: entries.iter().map(entry).collect(), ..Descriptor::default() }
}

fn user(name: &str) -> Descriptor {
    descriptor(&[("user", name)])
}

fn with_hits(hits: u64, descriptor: Descriptor) -> Descriptor {
    Descriptor { hits_addend: Some(hits), ..descriptor }
}

fn request(descriptors: &[Descriptor], hits_addend: u32) -> Request {
    Request { domain: "edge".into(), descriptors: descriptors.to_vec(), hits_addend }
}

async fn ask(rls: &Rls, descriptors: &[Descriptor], hits_addend: u32) -> RateLimitResponse {
    rls.answer(&request(descriptors, hits_addend)).await.unwrap().1
}

/// The codes of the whole and of each.
fn codes(response: &RateLimitResponse) -> (i32, Vec<i32>) {
    (response.overall_code, response.statuses.iter().map(|status| status.code).collect())
}

fn left(status: &DescriptorStatus) -> (u32, Option<&str>) {
    (status.limit_remaining, status.current_limit.as_ref().map(|limit| limit.name.as_str()))
}

async fn refusal(rls: &Rls, request: &Request) -> tonic::Code {
    rls.answer(request).await.unwrap_err().code()
}

#[tokio::test]
async fn hits_are_one_unless_said_and_costs_are_taken_whole_or_not_at_all() {
    let rls = rls().await;
    assert_eq!(left(&ask(&rls, &[user("i")], 0).await.statuses[0]), (99, Some("per-user")));
    let mut codes = Vec::new();
    for hits in [30, 30, 30, 30, 10] {
        codes.push(ask(&rls, &[user("iv")], hits).await.overall_code);
    }
    assert_eq!(codes, [OK, OK, OK, OVER, OK]);
    assert_eq!(left(&ask(&rls, &[with_hits(0, user("iv"))], 7).await.statuses[0]), (0, Some("per-user")));
}

#[tokio::test]
async fn no_hits_of_a_descriptor_only_look() {
    let rls = rls().await;
    let look = || async { ask(&rls, &[with_hits(0, user("iii"))], 0).await };
    assert_eq!((look().await.overall_code, look().await.statuses[0].limit_remaining), (OK, 100));
    ask(&rls, &[user("iii")], 100).await;
    assert_eq!(codes(&look().await), (OVER, vec![OVER]));
    let nothing = ask(&rls, &[with_hits(0, descriptor(&[("no", "limit")]))], 0).await;
    assert_eq!((codes(&nothing), &nothing.statuses[0].current_limit), ((OK, vec![OK]), &None));
    assert_eq!(limiter(&rls).stats().limits.iter().map(|limit| limit.counts.offered).sum::<u64>(), 100);
}

#[tokio::test]
async fn hits_beyond_any_limit_are_refused_and_wrap_nowhere() {
    let rls = rls().await;
    assert_eq!(codes(&ask(&rls, &[user("v")], u32::MAX).await), (OVER, vec![OVER]));
    assert_eq!(codes(&ask(&rls, &[with_hits(u64::MAX, user("v"))], 1).await), (OVER, vec![OVER]));
    assert_eq!(codes(&ask(&rls, &[user("v")], 101).await), (OVER, vec![OVER]));
    assert_eq!(left(&ask(&rls, &[user("v")], 1).await.statuses[0]), (99, Some("per-user")));
}

#[tokio::test]
async fn negative_hits_give_back_and_never_count_as_huge_ones() {
    let rls = rls().await;
    ask(&rls, &[user("vi")], 50).await;
    let back = |hits| Descriptor { is_negative_hits: true, ..with_hits(hits, user("vi")) };
    let answer = ask(&rls, &[back(20)], 0).await;
    assert_eq!((codes(&answer), left(&answer.statuses[0])), ((OK, vec![OK]), (70, Some("per-user"))));
    assert_eq!(ask(&rls, &[back(1000)], 0).await.statuses[0].limit_remaining, 100);
}

#[tokio::test]
async fn a_domain_or_descriptor_that_no_limit_knows_passes() {
    let rls = rls().await;
    let unknown = Request { domain: "unknown".into(), ..request(&[user("a"), user("b")], 0) };
    let (allowed, answer) = rls.answer(&unknown).await.unwrap();
    assert!(allowed && answer.statuses.iter().all(|status| status.current_limit.is_none()));
    assert_eq!(codes(&answer), (OK, vec![OK, OK]));
    let between =
        ask(&rls, &[user("f"), descriptor(&[("no", "limit")]), descriptor(&[("path", "/f")])], 0).await;
    let names: Vec<_> = between.statuses.iter().map(|status| left(status).1).collect();
    assert_eq!((codes(&between).0, names), (OK, vec![Some("per-user"), None, Some("per-path")]));
    for n in 0..10_000 {
        let domain = Request { domain: format!("domain-{n}").into(), ..request(&[user("i")], 0) };
        assert!(rls.answer(&domain).await.unwrap().0);
    }
    let buckets: usize = limiter(&rls).stats().limits.iter().map(|limit| limit.buckets).sum();
    assert_eq!(buckets, 2, "domains that no limit knows leave nothing");
}

#[tokio::test]
async fn what_says_nothing_is_an_error_and_never_a_plain_ok() {
    let rls = rls().await;
    let of = |descriptor: Descriptor| request(&[user("a"), descriptor], 0);
    for wrong in [
        Request { domain: "".into(), ..request(&[user("a")], 0) },
        request(&[], 0),
        request(&[descriptor(&[])], 0),
        request(&[descriptor(&[]), descriptor(&[])], 0),
        of(descriptor(&[("", "v")])),
        of(descriptor(&[("a", "1"), ("a", "2")])),
        of(descriptor(&[("domain", "other")])),
        of(descriptor(&[("a\n", "v")])),
        of(descriptor(&[(&"k".repeat(129), "v")])),
        Request { domain: "d\0".into(), ..request(&[user("a")], 0) },
        Request { domain: bytes::Bytes::from_static(b"\xff"), ..request(&[user("a")], 0) },
        request(&vec![user("a"); ask::MAX_DESCRIPTORS + 1], 0),
        of(descriptor(&vec![("k", "v"); 100])),
    ] {
        assert_eq!(refusal(&rls, &wrong).await, tonic::Code::InvalidArgument, "{wrong:?}");
    }
    assert_eq!(limiter(&rls).stats().limits[0].counts.offered, 0, "an error charges nothing");
}

#[tokio::test]
async fn a_value_that_is_empty_is_absent_and_one_that_is_none_to_count_by_is_counted_all_the_same() {
    let rls = rls().await;
    let empty = ask(&rls, &[user("")], 0).await;
    assert_eq!((codes(&empty), &empty.statuses[0].current_limit), ((OK, vec![OK]), &None));
    let long = "x".repeat(1025);
    for unsound in [long.as_bytes(), b"\xff\xfe", b"nul\0", b"line\nfeed"] {
        let mut torn = user("x");
        torn.entries[0].value = bytes::Bytes::copy_from_slice(unsound);
        let mut torn = request(&[torn], 100);
        torn.replace_unsound();
        let passes = [rls.answer(&torn).await.unwrap().0, rls.answer(&torn).await.unwrap().0];
        assert_eq!(passes, [true, false], "{unsound:?}: the limit decides");
    }
    assert_eq!(ask(&rls, &[user("a\tb")], 0).await.overall_code, OK);
}

/// As Envoy sends it where a client leaves a header out by which an action goes.
#[tokio::test]
async fn a_descriptor_without_entries_beside_others_meets_no_limit() {
    let rls = rls().await;
    let answer = ask(&rls, &[descriptor(&[]), user("d")], 0).await;
    assert_eq!((codes(&answer), &answer.statuses[0].current_limit), ((OK, vec![OK, OK]), &None));
    ask(&rls, &[user("d")], 99).await;
    assert_eq!(codes(&ask(&rls, &[user("d"), descriptor(&[])], 0).await), (OVER, vec![OVER, OK]));
}

#[tokio::test]
async fn one_descriptor_twice_counts_twice() {
    let rls = rls().await;
    let answer = ask(&rls, &[user("g"), user("g")], 0).await;
    assert_eq!(answer.statuses.iter().map(|status| status.limit_remaining).collect::<Vec<_>>(), [99, 98]);
}

#[tokio::test]
async fn a_later_refusal_gives_back_what_was_charged_before_and_charges_nothing_after() {
    let rls = rls().await;
    let path = descriptor(&[("path", "/pay")]);
    ask(&rls, std::slice::from_ref(&path), 2).await;
    let answer = ask(&rls, &[user("before"), path, user("after")], 0).await;
    assert_eq!(codes(&answer), (OVER, vec![OK, OVER, OK]));
    let told: Vec<_> = answer.statuses.iter().map(left).collect();
    assert_eq!(told, [(100, Some("per-user")), (0, Some("per-path")), (100, Some("per-user"))]);
    let wait = answer.statuses[1].duration_until_reset.unwrap().seconds;
    assert!((1..=3600).contains(&wait), "{wait}");
    let header = |name| answer.response_headers_to_add.iter().find(|header| header.key == name).unwrap();
    assert_eq!(header("retry-after").value, wait.to_string());
    assert_eq!((&*header("x-ratelimit-limit").value, &*header("x-ratelimit-remaining").value), ("2", "0"));
    let limit = answer.statuses[1].current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit), (2, Unit::Hour.into()));
}

#[tokio::test]
async fn an_unlimited_limit_has_no_numbers_and_a_ban_no_wait() {
    let rls = rls().await;
    let free = ask(&rls, &[descriptor(&[("plan", "free")])], 0).await;
    assert_eq!((codes(&free), left(&free.statuses[0])), ((OK, vec![OK]), (u32::MAX, None)));
    let banned = ask(&rls, &[user("mallory")], 0).await;
    assert_eq!((codes(&banned), banned.statuses[0].duration_until_reset), ((OVER, vec![OVER]), None));
    assert!(banned.response_headers_to_add.iter().all(|header| header.key != "retry-after"));
}

#[tokio::test]
async fn a_shadow_limit_lets_pass_and_counts() {
    let rls = rls().await;
    for _ in 0..5 {
        assert_eq!(ask(&rls, &[descriptor(&[("team", "a")])], 0).await.overall_code, OK);
    }
    let stats = limiter(&rls).stats();
    let rehearsed = stats.limits.iter().find(|limit| &*limit.limit.name == "rehearsed").unwrap();
    assert_eq!((rehearsed.counts.offered, rehearsed.counts.would_drop), (5, 4));
}

#[tokio::test]
async fn a_limit_in_the_request_holds_in_place_of_those_in_force() {
    let rls = rls().await;
    let with = |amount, unit, name| {
        let limit = Some(RateLimitOverride { requests_per_unit: amount, unit });
        [Descriptor { limit, ..user(name) }]
    };
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(ask(&rls, &with(3, 2, "h"), 0).await.overall_code);
    }
    assert_eq!(codes, [OK, OK, OK, OVER]);
    let refused = ask(&rls, &with(3, 2, "h"), 0).await;
    let limit = refused.statuses[0].current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit), (3, 2));
    assert!(refused.statuses[0].duration_until_reset.unwrap().seconds >= 1);
    assert_eq!(ask(&rls, &with(0, 1, "none"), 0).await.overall_code, OVER);
    assert_eq!(limiter(&rls).stats().limits[0].counts.offered, 0);
    assert_eq!(refusal(&rls, &request(&with(1, 0, "h"), 0)).await, tonic::Code::InvalidArgument);
    assert_eq!(refusal(&rls, &request(&with(1, 99, "h"), 0)).await, tonic::Code::InvalidArgument);
}
