use super::*;

fn at(seconds: u64) -> Moment {
    Moment::after(Duration::from_secs(seconds))
}

fn values(text: &str) -> Values {
    Values::Of(vec![text.to_owned()])
}

fn name(text: &str) -> Arc<str> {
    text.into()
}

/// A second in which so much was offered, and so much of it would have been dropped.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
fn second(offered: u64, would_drop: u64) -> Second {
    Second { counts: Counts { offered, would_drop, ..Counts::default() }, rate: offered as f64 }
}

/// Feeds a limit for some seconds, each as `each` says of its number.
fn feed(history: &mut History, seconds: std::ops::Range<u64>, each: impl Fn(u64) -> Second) {
    for number in seconds {
        history.turn(at(number));
        history.note(&name("a"), &each(number));
    }
}

#[test]
fn a_day_is_summed_by_the_minute() {
    let mut history = History::new(at(0));
    // 100/s all day, and 400/s against a limit of 300/s for ten minutes of the 20th hour, with a peak of one second.
    let (from, to) = (20 * 3600, 20 * 3600 + 600);
    feed(&mut history, 0..86_400, |number| match number {
        72_300 => second(900, 600),
        number if (from..to).contains(&number) => second(400, 100),
        _ => second(100, 0),
    });
    let past = history.of_limit("a", at(86_399)).unwrap();
    let summary = past.summary();
    assert_eq!((summary.minutes, summary.minutes_over, past.minutes.len()), (1440, 10, 1440));
    assert_eq!((summary.median, summary.p95, summary.peak), (100.0, 100.0, 900.0));
    assert_eq!((summary.offered, summary.would_drop), (8_820_500.0, 60_500.0));
    assert_eq!((summary.worst.len(), summary.worst[0].number), (5, 1205));
    assert_eq!(
        (summary.hours[20].peak, summary.hours[20].over, summary.hours[19].over),
        (900.0, 60_500.0, 0.0)
    );
}

#[test]
fn after_three_days_only_the_last_is_left() {
    let mut history = History::new(at(0));
    feed(&mut history, 0..3 * 86_400, |number| second(1 + number / 86_400, 0));
    let past = history.of_limit("a", at(3 * 86_400 - 1)).unwrap();
    assert_eq!((past.minutes.len(), past.since), (1440, KEPT));
    assert_eq!(past.summary().offered, 3.0 * 86_400.0);
    assert!(history.tracks["a"].minutes.capacity() <= 2048);
}

#[test]
fn minutes_without_traffic_take_no_place_and_change_no_rate() {
    let mut history = History::new(at(0));
    // Ten seconds of 50/s in each hour.
    feed(&mut history, 0..86_400, |number| if number % 3600 < 10 { second(50, 0) } else { second(0, 0) });
    let past = history.of_limit("a", at(86_399)).unwrap();
    assert_eq!((past.minutes.len(), past.summary().median), (24, 50.0));
}

#[test]
fn a_limit_that_was_idle_for_a_day_is_forgotten() {
    let mut history = History::new(at(0));
    feed(&mut history, 0..60, |_| second(5, 5));
    history.note_hit(&name("a"), BucketNumber(1), &values("x"), 5);
    history.turn(at(86_399));
    assert!(history.of_limit("a", at(86_399)).is_some());
    history.turn(at(86_400));
    assert!(history.of_limit("a", at(86_400)).is_none() && history.tracks.is_empty());
}

#[test]
fn no_more_limits_are_followed_than_there_are_places() {
    let mut history = History::new(at(0));
    for number in 0..MOST_LIMITS + 10 {
        history.note(&name(&number.to_string()), &second(1, 0));
    }
    assert!(history.is_full() && history.of_limit("1001", at(1)).is_none());
    history.note(&name("999"), &second(1, 0));
    assert_eq!(history.of_limit("999", at(1)).unwrap().summary().offered, 2.0);
}

#[test]
fn who_is_hit_hardest_is_found_among_many() {
    let mut history = History::new(at(0));
    feed(&mut history, 0..7200, |_| second(1, 1));
    let mut hits = |second: u64, bucket: u32, over: u64| {
        history.turn(at(second));
        history.note_hit(&name("a"), BucketNumber(bucket), &values(&bucket.to_string()), over);
    };
    for round in 0..7200 {
        hits(round, 1, 30);
        hits(round, 2, 20);
        // Five thousand others, of which none has much.
        (0..10).for_each(|n| hits(round, 10 + u32::try_from((round * 10 + n) % 5000).unwrap(), 1));
    }
    let found = history.of_limit("a", at(7199)).unwrap().hits;
    assert_eq!((&found[0].values, &found[1].values), (&values("1"), &values("2")));
    assert!(found.len() <= MOST_HITS);
    for (hit, truth) in found.iter().zip([30.0 * 7200.0, 20.0 * 7200.0]) {
        assert!(hit.over <= truth && hit.over > 0.98 * truth, "{hit:?} of {truth}");
    }
    let counters = &history.tracks["a"].hardest;
    assert!(format!("{counters:?}").len() < 20_000, "memory grows with the values");
}

#[test]
fn values_are_cut_where_characters_end() {
    let mut history = History::new(at(0));
    history.note(&name("a"), &second(1, 1));
    history.note_hit(&name("a"), BucketNumber(1), &values(&"東".repeat(1000)), 1);
    let Values::Of(kept) = &history.of_limit("a", at(0)).unwrap().hits[0].values else { panic!() };
    assert_eq!(kept[0].len(), 126);
}

#[test]
fn a_change_is_told_and_other_keys_begin_anew() {
    let set = |limits: &str| crate::limits::parse(&format!("limits: [{limits}]")).unwrap();
    let old = set("{name: a, rate: 5/second}");
    let mut history = History::new(at(0));
    feed(&mut history, 0..300, |_| second(5, 0));
    history.adopt(&old, &old, at(200));
    assert_eq!(history.of_limit("a", at(300)).unwrap().changed, None);
    let raised = set("{name: a, rate: 6/second}");
    history.adopt(&old, &raised, at(250));
    assert_eq!(history.of_limit("a", at(300)).unwrap().changed, Some(4));
    history.adopt(&raised, &set("{name: a, per: [k], rate: 6/second}"), at(300));
    assert!(history.of_limit("a", at(300)).is_none());
}
