use std::sync::Arc;
use std::time::Duration;

use headworks_agent::{Decisive, LimitRef, Remaining, Standing};

use axum::http::header::RETRY_AFTER;
use headworks_core::limits::{Enforcement, Missing, Mode, OnSilence, SurgeGuard};
use headworks_core::units::{Headroom, Rate, Unit};
use http_body_util::BodyExt as _;

use super::*;

const LIMIT: &str = "x-ratelimit-limit";
const REMAINING: &str = "x-ratelimit-remaining";

/// A verdict, and the limit that it rests on.
type Told = (Verdict, Option<Arc<Limit>>);

fn of_told((verdict, limit): &Told) -> Answer {
    of_verdict(verdict, limit.as_deref(), None, 0.0)
}

fn verdict(allowed: bool, rate: Rate, headroom: Headroom) -> Told {
    let limit = Limit {
        name: "checkout".into(),
        matches: Vec::new(),
        exactly: false,
        per: Vec::new(),
        rate,
        cost: 1,
        mode: Mode::Enforce,
        order: 0,
        on_silence: OnSilence::default(),
        max_buckets: 10,
        missing: Missing::Skip,
        burst: None,
        surge_guard: SurgeGuard::default(),
        max_rate_per_agent: None,
        enforcement: Enforcement::DropRatio,
        scope: headworks_core::limits::Scope::Global,
        overrides: Vec::new(),
        rollout: None,
    };
    let decisive = Decisive { limit: LimitRef::default(), standing: Standing::Headroom(headroom) };
    (Verdict { allowed, decisive: Some(decisive), unanswerable: None }, Some(Arc::new(limit)))
}

fn per_second(amount: u64) -> Rate {
    Rate::Per { amount, unit: Unit::Second }
}

async fn body(answer: Answer) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn an_admission_tells_what_remains() {
    let answer = of_told(&verdict(true, per_second(10), Headroom::of(10.0, 1.0)));
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
    let expected = r#"{"allowed":true,"limit_name":"checkout","remaining":9,"limit":10,"rate":10}"#;
    assert_eq!(body(answer).await, expected);
}

#[tokio::test]
async fn a_request_that_meets_no_limit_is_allowed_in_one_word() {
    let answer = of_told(&(Verdict { allowed: true, decisive: None, unanswerable: None }, None));
    assert_eq!(body(answer).await, r#"{"allowed":true}"#);
}

#[tokio::test]
async fn an_unlimited_limit_is_named_and_has_no_numbers() {
    let answer = of_told(&verdict(true, Rate::Unlimited, Headroom::OPEN));
    assert_eq!(body(answer).await, r#"{"allowed":true,"limit_name":"checkout"}"#);
}

#[tokio::test]
async fn a_refusal_tells_why_and_when_to_ask_again() {
    let answer = of_told(&verdict(false, per_second(400), Headroom::of(400.0, 800.0)));
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.headers()[RETRY_AFTER], "1");
    assert_eq!(answer.headers()[LIMIT], "400");
    assert_eq!(answer.headers()[REMAINING], "0");
    let expected = r#"{"allowed":false,"limit_name":"checkout","remaining":0,"limit":400,"rate":400,"retry_after_ms":1000}"#;
    assert_eq!(body(answer).await, expected);
}

#[tokio::test]
async fn a_budget_tells_its_amount_and_at_most_what_it_saves_up() {
    let rate = Rate::Per { amount: 6, unit: Unit::Minute };
    let answer = of_told(&verdict(true, rate, Headroom::of(12.0, 4.0)));
    let expected = r#"{"allowed":true,"limit_name":"checkout","remaining":6,"limit":6,"rate":0.1}"#;
    assert_eq!(body(answer).await, expected);
}

#[tokio::test]
async fn a_budget_that_is_used_up_tells_when_its_rate_gives_the_next_unit() {
    let rate = Rate::Per { amount: 50_000, unit: Unit::Day };
    let answer = of_told(&verdict(false, rate, Headroom::SHUT));
    assert_eq!(answer.headers()[RETRY_AFTER], "2");
    assert_eq!(answer.headers()[LIMIT], "50000");
    assert_eq!(answer.headers()[REMAINING], "0");
    assert!(body(answer).await.ends_with(r#""retry_after_ms":1728}"#));
}

fn exact(allowed: bool, remaining: u64, retry_after: Option<Duration>) -> Told {
    let rate = Rate::Per { amount: 60, unit: Unit::Minute };
    let told = Remaining { rate, limit: Some(60), remaining: Some(remaining), retry_after };
    let (mut verdict, limit) = verdict(allowed, rate, Headroom::OPEN);
    let standing = Standing::Exact(told);
    verdict.decisive = verdict.decisive.map(|decisive| Decisive { standing, ..decisive });
    (verdict, limit)
}

#[tokio::test]
async fn an_exact_limit_tells_what_remains_in_headers_too() {
    let answer = of_told(&exact(true, 59, None));
    assert_eq!(
        (&answer.headers()[LIMIT], &answer.headers()[REMAINING]),
        (&"60".parse().unwrap(), &"59".parse().unwrap())
    );
    let expected = r#"{"allowed":true,"limit_name":"checkout","remaining":59,"limit":60,"rate":1}"#;
    assert_eq!(body(answer).await, expected);
}

#[tokio::test]
async fn an_exact_refusal_names_the_whole_seconds_to_wait() {
    for (wait, seconds, ms) in
        [(200_000_000, "1", 200), (12_010_000_000, "13", 12_010), (59_989_000_001, "60", 59_990)]
    {
        let answer = of_told(&exact(false, 0, Some(Duration::from_nanos(wait))));
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers()[RETRY_AFTER], seconds);
        assert!(body(answer).await.ends_with(&format!(r#""retry_after_ms":{ms}}}"#)));
    }
    assert!(!of_told(&exact(false, 0, None)).headers().contains_key(RETRY_AFTER));
}

#[tokio::test]
async fn a_cost_that_never_passes_is_a_mistake_of_the_client() {
    let never = Unanswerable::NeverPasses { limit: LimitRef::default(), cost: 61, most: 60 };
    let (_, limit) = verdict(false, per_second(1), Headroom::OPEN);
    let answer = of_told(&(Verdict { allowed: false, decisive: None, unanswerable: Some(never) }, limit));
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert!(body(answer).await.contains("limit checkout: the cost of 61 is above 60"));
}

#[tokio::test]
async fn a_ban_names_no_time_to_retry() {
    let answer = of_told(&verdict(false, per_second(0), Headroom::SHUT));
    assert!(!answer.headers().contains_key(RETRY_AFTER));
    assert_eq!(answer.headers()[LIMIT], "0");
    let expected = r#"{"allowed":false,"limit_name":"checkout","remaining":0,"limit":0,"rate":0}"#;
    assert_eq!(body(answer).await, expected);
}

#[tokio::test]
async fn hostile_text_stays_inside_its_string() {
    let answer = error(StatusCode::BAD_REQUEST, "`x\"}\n\u{1b}]0;t\u{7}`");
    assert_eq!(body(answer).await, r#"{"error":"`x\"}\n\u001b]0;t\u0007`"}"#);
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let answer = wrong_method("GET, POST");
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.headers()[ALLOW], "GET, POST");
}
