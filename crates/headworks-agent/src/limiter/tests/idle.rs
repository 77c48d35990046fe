//! Buckets that rest give their places to others, and lose no count.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use headworks_core::agent::{Agent as State, Identity, Untracked};
use headworks_core::message::{BucketNumber, Incarnation};

use super::*;
use crate::records::Records;

const EACH: &str = "limits: [{name: each, per: [who], rate: 10/second, max_buckets: 2}]";

/// An agent's state and records, as its task has them.
struct Uplink {
    limiter: Limiter,
    state: State,
    records: Records,
    now: Moment,
}

impl Uplink {
    fn new(text: &str) -> Self {
        let identity = Identity {
            node: "agent".into(),
            incarnation: Incarnation(1),
            zone: "a".into(),
            region: String::new(),
            version: "1".into(),
        };
        let now = Moment::default();
        let (state, records) = (State::new(identity, Duration::from_secs(60), now), Records::default());
        Self { limiter: limiter(text), state, records, now }
    }

    /// A second passes; what was counted is told.
    fn second(&mut self) {
        self.now = self.now + Duration::from_secs(1);
        for record in self.limiter.take_opened() {
            let number = self.state.open(&record.key().unwrap(), self.now).unwrap();
            self.records.insert(number, record);
        }
        let state = &mut self.state;
        self.records.read(&self.limiter, self.now, |number, counts| state.count(number, counts, self.now));
        self.state.full_report(self.now);
        self.records.forget_idle(&mut self.state, &self.limiter, self.now);
    }

    fn offer(&self, who: &str) {
        self.limiter.check(Attributes::new(&[("who", who)]), None);
    }

    /// What was counted in each bucket.
    fn told(&mut self) -> Vec<(BucketNumber, u64)> {
        let mut told = Vec::new();
        self.records.read(&self.limiter, self.now, |number, counts| told.push((number, counts.offered)));
        told
    }

    fn buckets(&self) -> (usize, u64) {
        let stats = self.limiter.stats();
        (stats.limits[0].buckets, stats.limits[0].counts.offered)
    }
}

#[test]
fn what_rests_gives_its_place_to_another_and_its_counts_stay_in_the_sum() {
    let mut uplink = Uplink::new(EACH);
    ["a", "b", "c"].iter().for_each(|who| uplink.offer(who));
    assert_eq!(uplink.buckets(), (3, 3), "two, and one that all others share");
    for _ in 0..70 {
        uplink.offer("b");
        uplink.second();
    }
    assert_eq!(uplink.buckets(), (2, 73));
    uplink.offer("d");
    assert_eq!(uplink.buckets(), (3, 74));
    uplink.offer("a");
    assert_eq!(uplink.buckets(), (3, 75), "no place is left for it");
}

#[test]
fn requests_that_race_with_forgetting_are_all_counted() {
    let mut uplink = Uplink::new("limits: [{name: each, per: [who], rate: 10/second}]");
    let (limiter, stop) = (uplink.limiter.clone(), AtomicBool::new(false));
    let sent = thread::scope(|scope| {
        let senders: Vec<_> = (0..3_u64)
            .map(|_| {
                let (limiter, stop) = (limiter.clone(), &stop);
                scope.spawn(move || {
                    let mut sent = 0;
                    while !stop.load(Relaxed) {
                        limiter.check(Attributes::new(&[("who", "a")]), None);
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        // Whatever is in use: each record is taken from the limiter as soon as it is there.
        for _ in 0..20_000 {
            for record in limiter.take_opened() {
                let number = uplink.state.open(&record.key().unwrap(), uplink.now).unwrap();
                uplink.records.insert(number, record);
            }
            uplink.records.take_away_all(&limiter, uplink.now);
            uplink.records.let_go(&limiter, uplink.now);
        }
        stop.store(true, Relaxed);
        senders.into_iter().map(|sender| sender.join().unwrap()).sum::<u64>()
    });
    for record in limiter.take_opened() {
        let number = uplink.state.open(&record.key().unwrap(), uplink.now).unwrap();
        uplink.records.insert(number, record);
    }
    let later = uplink.now + Duration::from_secs(100);
    uplink.records.let_go(&limiter, later);
    let told: u64 = uplink.told().iter().map(|(_, offered)| offered).sum();
    assert_eq!(told, sent);
    assert_eq!(uplink.buckets().1, sent);
}

/// The record of these values, as the parents turn it away.
fn turn_away(uplink: &mut Uplink, record: &Handle, was_counted: bool) {
    let bucket = uplink.state.open(&record.key().unwrap(), uplink.now).unwrap();
    uplink.records.turn_away(&[Untracked { bucket, was_counted }], &uplink.limiter, uplink.now);
}

fn told_of_rest(uplink: &mut Uplink) -> u64 {
    let rest = uplink.state.rest(&"each".into()).unwrap();
    uplink.told().into_iter().find(|(number, _)| *number == rest).unwrap().1
}

#[test]
fn what_is_not_tracked_counts_in_the_bucket_that_all_such_values_share() {
    for (was_counted, told) in [(false, 12), (true, 10)] {
        let mut uplink = Uplink::new(EACH);
        (0..2).for_each(|_| uplink.offer("a"));
        let record = uplink.limiter.take_opened().remove(0);
        let number = uplink.state.open(&record.key().unwrap(), uplink.now).unwrap();
        uplink.records.insert(number, record.clone());
        turn_away(&mut uplink, &record, was_counted);
        (0..10).for_each(|_| uplink.offer("a"));
        uplink.second();
        uplink.second();
        assert_eq!(told_of_rest(&mut uplink), told, "what a parent has taken in is not told again");
        assert_eq!(uplink.buckets().1, 12);
        assert_eq!(uplink.limiter.stats().limits[0].untracked, 10);
    }
}

#[test]
fn whoever_is_new_while_no_place_is_free_waits_for_one_in_the_shared_bucket() {
    let mut uplink = Uplink::new(EACH);
    uplink.offer("a");
    let record = uplink.limiter.take_opened().remove(0);
    let number = uplink.state.open(&record.key().unwrap(), uplink.now).unwrap();
    uplink.records.insert(number, record.clone());
    turn_away(&mut uplink, &record, false);
    uplink.offer("b");
    uplink.second();
    let asks = uplink.limiter.stats().limits[0].untracked;
    assert_eq!(asks, 1);
    // The parents have a place for it.
    let key = BucketKey { values: Values::Of(vec!["b".into()]), ..record.key().unwrap() };
    let number = uplink.state.open(&key, uplink.now).unwrap();
    uplink.records.place(&[number], &uplink.limiter);
    uplink.offer("b");
    uplink.offer("c");
    assert_eq!(uplink.limiter.stats().limits[0].untracked, 2, "of `c`, since the limit tracks two here");
    let told = uplink.told().into_iter().find(|(known, _)| *known == number).unwrap().1;
    assert_eq!(told, 1);
}
