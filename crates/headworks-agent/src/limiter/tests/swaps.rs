//! Limits that change while requests are decided.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::*;

/// Both limits of a set say which one it is, and a request meets both.
fn set(number: usize) -> Arc<LimitSet> {
    let one = |name: &str| {
        format!("{{name: {name}, order: {number}, rate: 1000/second, burst: 1000000, enforcement: exact}}")
    };
    limits(&format!("limits: [{}, {}]", one("a"), one("b")))
}

/// Decides until it is over; each verdict is by limits as new as those of the one before, or newer.
fn decide(limiter: &Limiter, over: &AtomicBool) {
    let mut last = 0;
    while !over.load(Relaxed) {
        let rules = limiter.inner.rules.load();
        let numbers: Vec<i32> = rules.exact().iter().map(|exact| exact.limit().order).collect();
        assert_eq!(numbers[0], numbers[1], "half of a change");
        let verdict = limiter.check(Attributes::new(&[("key", "k")]), None);
        let number = decisive(limiter, verdict).order;
        assert!(number >= last && number >= numbers[0], "older limits came back");
        last = number;
    }
}

#[test]
fn no_thread_sees_older_limits_again_or_half_of_a_change() {
    let sets: Vec<_> = (0..10_000).map(set).collect();
    let limiter = Limiter::new(Clock::new());
    limiter.install(&sets[0]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| decide(&limiter, &over))).collect();
        sets.iter().for_each(|set| limiter.install(set));
        over.store(true, Relaxed);
        // What threads keep they leave when they end, which is a little after they have decided last.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    // Nothing but the limiter itself keeps the last few, and nobody the others.
    let kept = |set: &Arc<LimitSet>| Arc::strong_count(&set.limits()[0]) - 1;
    assert!(sets[..10_000 - 1 - REMEMBERED].iter().all(|set| kept(set) == 0), "old limits are kept");
}
