use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use headworks_core::attributes::Attributes;
use headworks_core::limits::{LimitSet, Mode, parse};
use headworks_core::units::Moment;

use super::*;

fn limits(text: &str) -> Vec<ExactLimit> {
    in_the_place_of(&[], text)
}

fn in_the_place_of(before: &[ExactLimit], text: &str) -> Vec<ExactLimit> {
    let set: LimitSet = parse(text).unwrap();
    let of = |limit: &Arc<_>| ExactLimit::new(limit, before.iter().find(|old| old.limit.name == limit.name));
    set.limits().iter().map(of).collect()
}

fn ms(ms: u64) -> Moment {
    Moment::after(Duration::from_secs(1_790_000_000) + Duration::from_millis(ms))
}

fn ask<'a>(limit: &'a ExactLimit, attributes: &'a [(&'a str, &'a str)], cost: u64) -> Ask<'a> {
    let attributes = Attributes::new(attributes);
    Ask {
        limit,
        attributes,
        first: limit.limit.values(attributes).next().unwrap_or_default(),
        lacks_value: false,
        cost,
        charge: cost,
        enforced: limit.limit.mode == Mode::Enforce,
        asked: false,
    }
}

/// Whether a request of cost 1 passes these limits.
fn passes<'a>(limits: impl IntoIterator<Item = &'a ExactLimit>, key: &str, now: Moment) -> bool {
    let attributes = [("key", key)];
    let asks: Asks<'_> = limits.into_iter().map(|limit| ask(limit, &attributes, 1)).collect();
    settle(&asks, now).0 == Settled::Passes
}

fn passed(limit: &ExactLimit, key: &str, n: usize, now: Moment) -> usize {
    (0..n).filter(|_| passes([limit], key, now)).count()
}

fn sweep_all(limit: &ExactLimit, now: Moment) {
    (0..64).for_each(|_| limit.sweep(now));
}

const PER_KEY: &str =
    "limits: [{name: t, per: [key], rate: 10/second, enforcement: exact, max_buckets: 1000000}]";

#[test]
fn twelve_quick_requests_of_ten_a_second_give_ten() {
    let limit = &limits(PER_KEY)[0];
    assert_eq!((passed(limit, "a", 12, ms(0)), passed(limit, "b", 1, ms(0))), (10, 1));
    let counts = limit.counts();
    assert_eq!((counts.offered, counts.dropped, counts.admitted()), (13, 2, 11));
}

#[test]
fn a_million_keys_that_came_once_are_gone_after_the_sweep() {
    let limit = &limits(PER_KEY)[0];
    for key in 0..1_000_000 {
        assert!(passes([limit], &key.to_string(), ms(0)));
    }
    assert_eq!(limit.tracked(), 1_000_000);
    sweep_all(limit, ms(99));
    assert_eq!(limit.tracked(), 1_000_000);
    sweep_all(limit, ms(100));
    assert_eq!(limit.tracked(), 0);
    assert_eq!(limit.counts().offered, 1_000_000);
}

#[test]
fn keys_chosen_by_an_attacker_push_nobody_out_and_share_one_bucket() {
    let text = "limits: [{name: t, per: [key], rate: 10/minute, enforcement: exact, max_buckets: 100}]";
    let limit = &limits(text)[0];
    assert_eq!(passed(limit, "victim", 12, ms(0)), 10);
    let admitted: usize = (0..10_000).map(|key| passed(limit, &format!("x{key}"), 1, ms(1))).sum();
    assert_eq!((limit.tracked(), admitted), (100, 99 + 10));
    sweep_all(limit, ms(2));
    assert_eq!(limit.tracked(), 100);
    // Its budget is as it was: six seconds give one unit.
    assert_eq!(passed(limit, "victim", 12, ms(6000)), 1);
}

#[test]
fn a_caller_that_gets_a_bucket_of_its_own_brings_along_what_the_shared_one_owes() {
    let text = "limits: [{name: t, per: [key], rate: 10/minute, enforcement: exact, max_buckets: 1}]";
    let limit = &limits(text)[0];
    passed(limit, "first", 1, ms(0));
    assert_eq!(passed(limit, "late", 20, ms(0)), 10);
    sweep_all(limit, ms(6000));
    assert_eq!((limit.tracked(), passed(limit, "late", 20, ms(6000))), (0, 1));
    assert_eq!((limit.tracked(), passed(limit, "late", 20, ms(12_000))), (1, 1));
}

#[test]
fn what_an_override_names_has_its_own_bucket_however_full_it_is() {
    let text = "
limits:
  - {name: t, per: [key], rate: 10/second, enforcement: exact, max_buckets: 1, overrides: [
      {match: {key: tenant-a}, rate: 100/second, burst: 200}, {match: {key: 'batch-*'}, rate: 2/second},
      {match: {key: 'batch-x*'}, rate: 3/second}, {match: {key: mallory}, rate: 0/second},
      {match: {key: free}, rate: unlimited}]}";
    let limit = &limits(text)[0];
    passed(limit, "first", 1, ms(0));
    assert_eq!(passed(limit, "tenant-a", 300, ms(0)), 200);
    assert_eq!(passed(limit, "tenant-a", 300, ms(100)), 10);
    assert_eq!((passed(limit, "mallory", 5, ms(0)), passed(limit, "free", 500, ms(0))), (0, 500));
    assert_eq!(limit.tracked(), 4);
    let roomy = &limits(&text.replace("max_buckets: 1,", ""))[0];
    let batches = ["batch-", "batch-1", "batch-xy", "Batch-1"].map(|key| passed(roomy, key, 20, ms(0)));
    assert_eq!(batches, [2, 2, 3, 10]);
}

const THREE: &str = "
limits:
  - {name: a, per: [key], rate: 3/minute, enforcement: exact}
  - {name: b, rate: 5/minute, enforcement: exact, algorithm: sliding_window}
  - {name: c, rate: 4/minute, enforcement: exact, algorithm: fixed_window}";

#[test]
fn a_refusal_by_one_takes_nothing_from_the_others_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let limits = limits(THREE);
        let all = || order.map(|place| &limits[place]);
        // Room for three of one key, then four of all.
        let k = (0..50).filter(|_| passes(all(), "k", ms(0))).count();
        let l = (0..50).filter(|_| passes(all(), "l", ms(0))).count();
        assert_eq!((k, l), (3, 1), "{order:?}");
        assert_eq!(passed(&limits[1], "m", 9, ms(0)), 1, "b was charged for what passed, in {order:?}");
        assert_eq!(passed(&limits[0], "l", 9, ms(0)), 2, "a was charged for what passed, in {order:?}");
    }
}

#[test]
fn a_shadow_limit_is_charged_as_if_enforced_and_stops_nobody() {
    let text = "
limits:
  - {name: trial, per: [key], rate: 3/minute, enforcement: exact, mode: shadow}
  - {name: b, rate: 5/minute, enforcement: exact}";
    let limits = limits(text);
    assert_eq!((0..9).filter(|_| passes(&limits, "k", ms(0))).count(), 5);
    let counts = limits[0].counts();
    assert_eq!((counts.offered, counts.would_drop, counts.dropped), (9, 6, 0));
    assert_eq!(limits[1].counts().dropped, 4);
    // It took three of its own: after twenty seconds there is one again.
    assert!(passes([&limits[1]], "k", ms(12_000)));
    let asks = [ask(&limits[0], &[("key", "k")], 1)];
    assert!(settle(&asks, ms(20_000)).1[0].passes && !settle(&asks, ms(20_000)).1[0].passes);
}

#[test]
fn a_new_rate_keeps_what_was_used() {
    let of =
        |amount: u32| format!("limits: [{{name: t, per: [key], rate: {amount}/hour, enforcement: exact}}]");
    let ten = limits(&of(10));
    assert_eq!((passed(&ten[0], "a", 50, ms(0)), passed(&ten[0], "b", 1, ms(0))), (10, 1));
    let twenty = in_the_place_of(&ten, &of(20));
    assert_eq!(passed(&twenty[0], "a", 12, ms(1)), 10);
    // A request that is still decided by the old rules goes by the new ones.
    assert!(!passes([&ten[0]], "a", ms(1)));
    let five = in_the_place_of(&twenty, &of(5));
    let attributes = [("key", "a")];
    let (settled, outcomes) = settle(&[ask(&five[0], &attributes, 1)], ms(2));
    assert_eq!((settled, outcomes[0].told.remaining), (Settled::Refused(0), Some(0)));
}

#[test]
fn a_cost_above_the_burst_is_a_mistake_only_of_whoever_named_it() {
    let limit = &limits(PER_KEY)[0];
    let attributes = [("key", "k")];
    let asked = Ask { asked: true, ..ask(limit, &attributes, 11) };
    assert_eq!(settle(&[asked], ms(0)).0, Settled::NeverPasses { place: 0, most: 10 });
    assert_eq!(settle(&[ask(limit, &attributes, 11)], ms(0)).0, Settled::Refused(0));
    assert_eq!(limit.counts().offered, 11);
}

#[test]
fn threads_that_meet_limits_in_opposite_orders_never_wait_for_each_other_and_count_exactly() {
    let text = "
limits:
  - {name: a, per: [key], rate: 5000/hour, enforcement: exact}
  - {name: b, rate: 7000/hour, enforcement: exact}
  - {name: c, per: [key], rate: 6000/hour, enforcement: exact, max_buckets: 1}";
    let limits = limits(text);
    let ran: Vec<usize> = thread::scope(|scope| {
        let run = |thread: usize| {
            let limits = &limits;
            scope.spawn(move || {
                let order = if thread.is_multiple_of(2) { [0, 1, 2] } else { [2, 1, 0] };
                let key = |i: usize| ["x", "y"][i % 2];
                (0..10_000)
                    .filter(|i| {
                        sweep_all(&limits[0], ms(0));
                        passes(order.map(|place| &limits[place]), key(*i), ms(0))
                    })
                    .count()
            })
        };
        (0..4).map(run).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ran.iter().sum::<usize>(), 7000);
    assert_eq!(limits[1].counts().charged(), 7000);
}

#[test]
fn requests_that_share_buckets_do_not_wait_for_each_other_whatever_the_order_of_their_limits() {
    // No values have a place of their own but the first.
    let text = "limits: [
        {name: a, per: [key], rate: 1000000/second, enforcement: exact, max_buckets: 1},
        {name: b, per: [key], rate: 1000000/second, enforcement: exact, max_buckets: 1}]";
    let limits = limits(text);
    assert!(passes(&limits, "first", ms(0)));
    // A reload that changes `order` while requests are decided by the older snapshot.
    let (done, both) = mpsc::channel();
    for turned in [false, true] {
        let (mut limits, done) = (limits.clone(), done.clone());
        if turned {
            limits.reverse();
        }
        thread::spawn(move || {
            assert!((0..200_000).all(|key| passes(&limits, &key.to_string(), ms(0))));
            done.send(())
        });
    }
    for _ in 0..2 {
        both.recv_timeout(Duration::from_secs(60)).expect("the threads wait for each other");
    }
}
