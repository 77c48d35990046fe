//! What a budget pays for: what passed the whole pipeline, whoever dropped the rest.

use headworks_core::bucket::Counts;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// A budget, and a limit behind it.
const BUDGET_FIRST: &str = "
limits:
  - {name: budget, rate: 6/minute, order: 1}
  - {name: later, rate: 10/second, order: 2}
";

fn counts_of(limiter: &Limiter, name: &str) -> Counts {
    let stats = limiter.stats().limits;
    stats.iter().find(|stats| &*stats.limit.name == name).unwrap().counts
}

/// The records of one limit among those opened.
fn of<'a>(records: &'a [Handle], name: &str) -> &'a [Handle] {
    let at = records.iter().position(|record| &*record.key().unwrap().limit == name).unwrap();
    &records[at..=at]
}

#[test]
fn what_a_later_limit_drops_is_not_paid_for_and_what_passes_all_is() {
    let limiter = limiter(BUDGET_FIRST);
    let records = limiter.take_opened();
    squeeze(of(&records, "later"), 0.0);
    assert_eq!(allowed_of(&limiter, 5, &[]), 0);
    let all_refused = Counts { offered: 5, refused_later: 5, ..Counts::default() };
    assert_eq!(counts_of(&limiter, "budget"), all_refused);
    squeeze(of(&records, "later"), 1.0);
    assert_eq!(allowed_of(&limiter, 3, &[]), 3);
    assert_eq!(counts_of(&limiter, "budget"), Counts { offered: 8, ..all_refused });
    assert_eq!(counts_of(&limiter, "budget").charged(), 3);
}

#[test]
fn what_the_budget_itself_drops_never_reaches_the_later_limit() {
    let limiter = limiter(BUDGET_FIRST);
    let records = limiter.take_opened();
    squeeze(&records, 0.0);
    allowed_of(&limiter, 4, &[]);
    assert_eq!(counts_of(&limiter, "budget"), Counts { offered: 4, dropped: 4, ..Counts::default() });
    assert_eq!(counts_of(&limiter, "later"), Counts::default());
}

#[test]
fn a_limit_per_second_counts_no_later_refusals() {
    let limiter = limiter(&BUDGET_FIRST.replace("6/minute", "6/second"));
    squeeze(of(&limiter.take_opened(), "later"), 0.0);
    allowed_of(&limiter, 5, &[]);
    assert_eq!(counts_of(&limiter, "budget"), Counts { offered: 5, ..Counts::default() });
}

#[test]
fn what_a_shadow_limit_behind_would_drop_is_paid_for() {
    let limiter = limiter(&BUDGET_FIRST.replace("order: 2", "order: 2, mode: shadow"));
    squeeze(of(&limiter.take_opened(), "later"), 0.0);
    assert_eq!(allowed_of(&limiter, 5, &[]), 5);
    assert_eq!(counts_of(&limiter, "budget").charged(), 5);
}

#[test]
fn a_budget_is_told_of_as_many_units_as_the_request_costs() {
    let limiter = limiter(&BUDGET_FIRST.replace("order: 1", "order: 1, cost: 3"));
    squeeze(of(&limiter.take_opened(), "later"), 0.0);
    limiter.check(Attributes::new(&[]), None);
    limiter.check(Attributes::new(&[]), Some(50));
    let counts = counts_of(&limiter, "budget");
    assert_eq!((counts.offered, counts.refused_later, counts.charged()), (53, 53, 0));
}

#[test]
fn what_a_shadow_budget_would_have_dropped_is_not_refunded_a_second_time() {
    let limiter = limiter(&BUDGET_FIRST.replace("order: 1", "order: 1, mode: shadow"));
    let records = limiter.take_opened();
    squeeze(&records, 0.0);
    assert_eq!(allowed_of(&limiter, 10, &[]), 0);
    let twice = Counts { offered: 10, would_drop: 10, ..Counts::default() };
    assert_eq!(counts_of(&limiter, "budget"), twice);
    squeeze(of(&records, "budget"), 0.5);
    assert_eq!(allowed_of(&limiter, 1000, &[]), 0);
    let counts = counts_of(&limiter, "budget").since(twice);
    assert!((499..=501).contains(&counts.would_drop), "{counts:?}");
    assert_eq!((counts.would_drop + counts.refused_later, counts.charged()), (1000, 0), "{counts:?}");
}

#[test]
fn a_shadow_budget_pays_for_what_would_pass_were_it_enforced() {
    let limiter = limiter(&BUDGET_FIRST.replace("order: 1", "order: 1, mode: shadow"));
    squeeze(&limiter.take_opened(), 0.5);
    let mut would_pass = 0;
    for _ in 0..1000 {
        let before = counts_of(&limiter, "budget").would_drop;
        let allowed = allowed_of(&limiter, 1, &[]) == 1;
        would_pass += u64::from(allowed && counts_of(&limiter, "budget").would_drop == before);
    }
    assert!(would_pass > 0);
    assert_eq!(counts_of(&limiter, "budget").charged(), would_pass);
}

#[test]
fn a_request_dropped_for_a_missing_key_costs_the_budget_nothing() {
    let limiter = limiter("limits: [{name: budget, per: [key], rate: 6/minute, missing: drop}]");
    assert_eq!(allowed_of(&limiter, 4, &[]), 0);
    assert_eq!(allowed_of(&limiter, 2, &[("key", "a")]), 2);
    let counts = counts_of(&limiter, "budget");
    assert_eq!((counts.offered, counts.dropped, counts.charged()), (6, 4, 2));
}

#[test]
fn a_budget_before_one_that_drops_for_a_missing_key_gets_its_refund() {
    let limiter = limiter(
        "limits:
  - {name: narrow, per: [caller, service], rate: 6/minute}
  - {name: keyed, per: [key], rate: 6/minute, missing: drop}",
    );
    let caller = [("caller", "c"), ("service", "s")];
    assert_eq!(allowed_of(&limiter, 4, &caller), 0);
    assert_eq!(counts_of(&limiter, "narrow"), Counts { offered: 4, refused_later: 4, ..Counts::default() });
    assert_eq!(counts_of(&limiter, "keyed"), Counts { offered: 4, dropped: 4, ..Counts::default() });
}

#[test]
fn a_shadow_budget_that_lets_a_missing_key_pass_is_neither_charged_nor_refunded() {
    let limiter = limiter(
        "limits:
  - {name: budget, per: [key], rate: 6/minute, missing: drop, mode: shadow}
  - {name: later, rate: 10/second}",
    );
    let records = limiter.take_opened();
    assert_eq!(allowed_of(&limiter, 3, &[]), 3);
    squeeze(of(&records, "later"), 0.0);
    assert_eq!(allowed_of(&limiter, 4, &[]), 0);
    assert_eq!(counts_of(&limiter, "budget"), Counts { offered: 7, would_drop: 7, ..Counts::default() });
}

/// Only those that a request met and passed are refunded: the first would have dropped it, the second is none of its
/// business, the third let it pass.
#[test]
fn of_several_budgets_each_is_refunded_by_what_it_did() {
    let limiter = limiter(
        "limits:
  - {name: tried, rate: 6/minute, order: 1, mode: shadow}
  - {name: foreign, per: [key], rate: 6/minute}
  - {name: met, rate: 6/minute, order: 2}
  - {name: wall, rate: 6/minute, order: 3}
  - {name: behind, rate: 6/minute, order: 4}",
    );
    let records = limiter.take_opened();
    squeeze(of(&records, "tried"), 0.0);
    squeeze(of(&records, "wall"), 0.0);
    assert_eq!(allowed_of(&limiter, 5, &[]), 0);
    assert_eq!(counts_of(&limiter, "tried"), Counts { offered: 5, would_drop: 5, ..Counts::default() });
    assert_eq!(counts_of(&limiter, "foreign"), Counts::default());
    assert_eq!(counts_of(&limiter, "met"), Counts { offered: 5, refused_later: 5, ..Counts::default() });
    assert_eq!(counts_of(&limiter, "wall"), Counts { offered: 5, dropped: 5, ..Counts::default() });
    assert_eq!(counts_of(&limiter, "behind"), Counts::default());
}

#[derive(Clone, Debug)]
struct Asked {
    key: Option<&'static str>,
    service: bool,
    cost: Option<u32>,
}

impl Asked {
    fn attributes(&self) -> Vec<(&'static str, &'static str)> {
        let service = self.service.then_some(("service", "s"));
        self.key.map(|key| ("key", key)).into_iter().chain(service).collect()
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let key = select(vec![None, Some("a"), Some("b"), Some("c")]);
    (key, any::<bool>(), option::of(1..9_u32)).prop_map(|(key, service, cost)| Asked { key, service, cost })
}

/// One limit of a random pipeline; one of the two buckets that `per` may open is the one that the others share.
fn limit(name: &'static str, rates: &'static [&'static str]) -> impl Strategy<Value = String> {
    let per = select(vec!["", "per: [key], max_buckets: 2, ", "match: {service: s}, "]);
    let missing = select(vec!["skip", "empty", "drop"]);
    let (mode, rate, order) = (select(vec!["enforce", "shadow"]), select(rates), 0..2);
    (per, missing, mode, rate, order).prop_map(move |(per, missing, mode, rate, order)| {
        let missing = if per.starts_with("per") { format!("missing: {missing}, ") } else { String::new() };
        format!("{{name: {name}, {per}{missing}mode: {mode}, rate: {rate}, order: {order}, cost: 2}}")
    })
}

fn headroom() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.1..0.9, Just(f64::INFINITY)]
}

proptest! {
    #[test]
    fn a_budget_pays_for_what_the_whole_pipeline_lets_pass(
        budget in limit("budget", &["6/minute", "1000/hour"]),
        other in limit("other", &["10/second", "6/minute"]),
        (of_budget, of_other) in (headroom(), headroom()),
        sequence in vec(asked(), 0..60),
    ) {
        let limiter = limiter(&format!("limits: [{budget}, {other}]"));
        let mut would_pass = 0;
        for asked in sequence {
            for record in limiter.take_opened() {
                let headroom = if &*record.key().unwrap().limit == "budget" { of_budget } else { of_other };
                squeeze(&[record], headroom);
            }
            let before = counts_of(&limiter, "budget");
            let verdict = limiter.check(Attributes::new(&asked.attributes()), asked.cost);
            let counted = counts_of(&limiter, "budget").since(before);
            if verdict.allowed {
                would_pass += counted.offered - counted.would_drop;
            }
        }
        let counts = counts_of(&limiter, "budget");
        prop_assert_eq!(counts.charged(), would_pass, "{:?}", counts);
        let told_apart = counts.dropped + counts.would_drop + counts.refused_later + would_pass;
        prop_assert_eq!(told_apart, counts.offered, "{:?}", counts);
    }

    #[test]
    fn an_enforced_budget_of_everything_pays_for_each_request_that_is_allowed(
        other in limit("other", &["10/second", "6/minute"]),
        (of_budget, of_other) in (headroom(), headroom()),
        sequence in vec(asked(), 0..60),
    ) {
        let limiter = limiter(&format!("limits: [{{name: budget, rate: 6/minute}}, {other}]"));
        let mut allowed = 0;
        for asked in sequence {
            for record in limiter.take_opened() {
                let headroom = if &*record.key().unwrap().limit == "budget" { of_budget } else { of_other };
                squeeze(&[record], headroom);
            }
            allowed += allowed_of(&limiter, 1, &asked.attributes());
        }
        prop_assert_eq!(counts_of(&limiter, "budget").charged(), u64::try_from(allowed).unwrap());
    }
}
