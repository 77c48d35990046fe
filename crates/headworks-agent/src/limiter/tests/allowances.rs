//! The surge guard on the request path: what passes between two plans, and whom it wakes.

use futures_util::FutureExt;
use headworks_core::guard::Allowance;

use super::*;

/// Refills of a rate this small come once in a quarter of an hour: for a test the clock stands still.
const HARDLY: f64 = 1e-6;

fn guard(limiter: &Limiter, headroom: Headroom, depth: f64) {
    let allowance = Some(Allowance { rate: HARDLY, depth });
    for record in limiter.take_opened() {
        record.set(InForce { headroom, allowance }, limiter.inner.bell.now());
    }
}

/// Whether the uplink was woken since it was asked last.
fn is_woken(limiter: &Limiter) -> bool {
    limiter.spent().now_or_never().is_some()
}

#[test]
fn passes_its_depth_and_no_more_while_the_clock_hardly_moves() {
    let limiter = limiter(CHECKOUT);
    guard(&limiter, Headroom::OPEN, 25.0);
    assert_eq!(allowed_of(&limiter, 100, &[("service", "checkout")]), 25);
    let counts = limiter.stats().limits[0].counts;
    assert_eq!((counts.offered, counts.dropped, counts.would_drop), (100, 75, 0));
    let verdict = limiter.check(Attributes::new(&[("service", "checkout")]), None);
    assert_eq!(&*decisive(&limiter, verdict).name, "checkout");
    assert_eq!(allowed_of(&limiter, 10, &[("service", "search")]), 10);
}

#[test]
fn a_shadow_limit_counts_what_its_allowance_would_drop_and_lets_it_pass() {
    let limiter = limiter(&CHECKOUT.replace("400/second", "400/second, mode: shadow"));
    guard(&limiter, Headroom::OPEN, 25.0);
    assert_eq!(allowed_of(&limiter, 100, &[("service", "checkout")]), 100);
    let counts = limiter.stats().limits[0].counts;
    assert_eq!((counts.offered, counts.dropped, counts.would_drop), (100, 0, 75));
}

#[test]
fn units_count_and_not_requests() {
    let limiter = limiter(CHECKOUT);
    guard(&limiter, Headroom::OPEN, 25.0);
    let check = || limiter.check(Attributes::new(&[("service", "checkout")]), Some(10)).allowed;
    assert_eq!([check(), check(), check()], [true, true, false]);
    assert_eq!(allowed_of(&limiter, 10, &[("service", "checkout")]), 5);
}

#[test]
fn what_the_ratio_drops_takes_nothing_of_the_allowance() {
    let limiter = limiter(CHECKOUT);
    guard(&limiter, Headroom::new(0.5).unwrap(), 100.0);
    let allowed = allowed_of(&limiter, 150, &[("service", "checkout")]);
    assert!((74..=76).contains(&allowed), "{allowed}");
    assert!(!is_woken(&limiter), "the ratio is no news");
}

#[test]
fn the_uplink_is_woken_once_and_again_only_after_its_rest() {
    let limiter = limiter(CHECKOUT);
    guard(&limiter, Headroom::OPEN, 5.0);
    allowed_of(&limiter, 5, &[("service", "checkout")]);
    assert!(!is_woken(&limiter), "nothing was held back yet");
    allowed_of(&limiter, 1, &[("service", "checkout")]);
    assert!(is_woken(&limiter));
    allowed_of(&limiter, 100, &[("service", "checkout")]);
    assert!(!is_woken(&limiter), "it has not come round since");
    limiter.rest();
    assert!(!is_woken(&limiter), "a rest alone is no news");
    allowed_of(&limiter, 100, &[("service", "checkout")]);
    assert!(is_woken(&limiter));
    assert!(!is_woken(&limiter));
}

#[test]
fn without_an_allowance_everything_passes_again() {
    let limiter = limiter(CHECKOUT);
    let records = limiter.take_opened();
    let of = |allowance| InForce { headroom: Headroom::OPEN, allowance };
    let now = limiter.inner.bell.now();
    records[0].set(of(Some(Allowance { rate: HARDLY, depth: 1.0 })), now);
    assert_eq!(allowed_of(&limiter, 10, &[("service", "checkout")]), 1);
    records[0].set(of(None), now);
    assert_eq!(allowed_of(&limiter, 10, &[("service", "checkout")]), 10);
}

#[test]
fn what_an_allowance_holds_back_is_refunded_to_the_budget_before_it() {
    let limiter = limiter(
        "limits:
  - {name: budget, rate: 6/minute, order: 1}
  - {name: later, rate: 10/second, order: 2}",
    );
    let records = limiter.take_opened();
    let later = records.iter().find(|record| &*record.key().unwrap().limit == "later").unwrap();
    let allowance = Some(Allowance { rate: HARDLY, depth: 4.0 });
    later.set(InForce { headroom: Headroom::OPEN, allowance }, limiter.inner.bell.now());
    assert_eq!(allowed_of(&limiter, 10, &[]), 4);
    let counts = limiter.stats().limits[0].counts;
    assert_eq!((counts.offered, counts.refused_later, counts.charged()), (10, 6, 4));
}
