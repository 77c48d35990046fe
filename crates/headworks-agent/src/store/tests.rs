//! The script beside the rules of the core, in a real Redis, at moments that the test chooses.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use headworks_core::exact::{Rule, State};
use headworks_core::limits::Algorithm;
use headworks_core::units::{Moment, Rate, Unit};
use redis::Connection;

use super::script::{self, Told};

/// A Redis on a Unix socket, gone with the test.
struct Redis {
    child: Child,
    connection: Connection,
    _directory: tempfile::TempDir,
}

impl Redis {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("redis");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket).stdout(Stdio::null());
        let child = command.spawn().expect("redis-server is missing: install Debian's package redis-server");
        let client = redis::Client::open(format!("redis+unix://{}", socket.display())).unwrap();
        let connect = || {
            std::thread::sleep(Duration::from_millis(20));
            client.get_connection().ok()
        };
        let connection = (0..250).find_map(|_| connect()).expect("redis-server does not listen");
        Self { child, connection, _directory: directory }
    }

    /// Runs the script as if it were `micros` after 1970.
    fn check(&mut self, micros: u64, asks: &[Asked]) -> Vec<Told> {
        let script = script::CHECK.replace("redis.call('TIME')", "{ 0, ARGV[#KEYS + 1] }");
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(asks.len());
        asks.iter().for_each(|ask| {
            command.arg(ask.key);
        });
        asks.iter().for_each(|ask| {
            command.arg(&script::packed(ask.rule.numbers().unwrap(), ask.enforced, ask.cost, ask.cost)[..]);
        });
        let reply: redis::Value = command.arg(micros).query(&mut self.connection).unwrap();
        script::told(&reply, asks.len()).unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy)]
struct Asked {
    key: &'static str,
    rule: Rule,
    cost: u64,
    enforced: bool,
}

fn asked(key: &'static str, rule: Rule, cost: u64) -> Asked {
    Asked { key, rule, cost, enforced: true }
}

fn rule(algorithm: Algorithm, amount: u64, unit: Unit, burst: Option<u64>) -> Rule {
    Rule::new(algorithm, Rate::Per { amount, unit }, burst)
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
/// Long after 1970, and not at the edge of a window.
const BEGIN: u64 = 1_790_000_007_654_321;

#[test]
fn it_rules_as_the_core_does() {
    let mut redis = Redis::start();
    let mut chance = fastrand::Rng::with_seed(5);
    let keys = ["a", "b", "c"];
    for algorithm in ALGORITHMS {
        for (key, amount) in keys.into_iter().zip([7, 60, 1000]) {
            let burst = (algorithm == Algorithm::TokenBucket).then_some(2 * amount);
            let rule = rule(algorithm, amount, Unit::Minute, burst);
            let _: () = redis::cmd("FLUSHALL").query(&mut redis.connection).unwrap();
            let (mut state, mut now) = (State::New, BEGIN);
            for step in 0..1500 {
                now += chance.u64(0..60_000_000 / amount);
                let cost = 1 + chance.u64(0..1 + amount / 4);
                let expected = rule.decide(&mut state, cost, cost, Moment::after(Duration::from_micros(now)));
                let told = redis.check(now, &[asked(key, rule, cost)])[0];
                let left = expected.remaining.unwrap() - if expected.passes { cost } else { 0 };
                let at = format!("{algorithm:?} {amount}, step {step}, cost {cost}");
                assert_eq!((told.passes, told.left), (expected.passes, left), "{at}");
                if let Some(wait) = expected.retry_after {
                    let early = wait.saturating_sub(told.wait);
                    assert!(
                        told.wait >= wait && told.wait - wait <= Duration::from_micros(1),
                        "{at}: {early:?}"
                    );
                }
            }
        }
    }
}

/// What passes of so many requests at one moment.
fn passed(redis: &mut Redis, micros: u64, ask: Asked, requests: usize) -> usize {
    (0..requests).filter(|_| redis.check(micros, &[ask])[0].passes).count()
}

#[test]
fn requests_of_one_moment_are_told_apart() {
    let mut redis = Redis::start();
    for (algorithm, key) in ALGORITHMS.into_iter().zip(["a", "b", "c"]) {
        let ask = asked(key, rule(algorithm, 100, Unit::Minute, None), 1);
        assert_eq!(passed(&mut redis, BEGIN, ask, 300), 100, "{algorithm:?}");
    }
}

#[test]
fn around_the_edge_of_a_minute_a_sliding_window_passes_what_one_minute_may() {
    let mut redis = Redis::start();
    let minute = BEGIN - BEGIN % 60_000_000;
    for (algorithm, key, most) in [(Algorithm::SlidingWindow, "a", 60), (Algorithm::FixedWindow, "b", 120)] {
        let ask = asked(key, rule(algorithm, 60, Unit::Minute, None), 1);
        let before = passed(&mut redis, minute + 59_000_000, ask, 60);
        let after = passed(&mut redis, minute + 61_000_000, ask, 60);
        assert_eq!(before + after, most, "{algorithm:?}");
    }
}

#[test]
fn a_refusal_by_one_takes_nothing_from_the_others_wherever_it_stands() {
    let mut redis = Redis::start();
    let spent = asked("spent", rule(Algorithm::TokenBucket, 1, Unit::Hour, None), 1);
    let [token, sliding, fixed] = ALGORITHMS.map(|algorithm| rule(algorithm, 10, Unit::Hour, None));
    let (token, sliding, fixed) = (asked("t", token, 3), asked("s", sliding, 3), asked("f", fixed, 3));
    assert_eq!(passed(&mut redis, BEGIN, spent, 2), 1);
    for asks in
        [[spent, token, sliding, fixed], [token, spent, sliding, fixed], [token, sliding, fixed, spent]]
    {
        let told = redis.check(BEGIN, &asks);
        let left = |key| told[asks.iter().position(|ask| ask.key == key).unwrap()];
        assert!(!left("spent").passes);
        for key in ["t", "s", "f"] {
            assert_eq!(
                (left(key).passes, left(key).left, left(key).wait),
                (true, 10, Duration::ZERO),
                "{key}"
            );
        }
    }
    // In shadow it is passed over, and the others are charged.
    let shadow = Asked { enforced: false, ..spent };
    for (asks, left) in [([shadow, token], 7), ([token, shadow], 4)] {
        let told = redis.check(BEGIN, &asks);
        let at = asks.iter().position(|ask| ask.key == "t").unwrap();
        assert_eq!((told[at].passes, told[at].left, told[1 - at].passes), (true, left, false));
    }
}

#[test]
fn a_changed_limit_goes_on_with_what_was_used() {
    let mut redis = Redis::start();
    for (algorithm, key) in ALGORITHMS.into_iter().zip(["a", "b", "c"]) {
        let of = |amount| asked(key, rule(algorithm, amount, Unit::Hour, None), 1);
        assert_eq!(passed(&mut redis, BEGIN, of(10), 50), 10, "{algorithm:?}");
        assert_eq!(passed(&mut redis, BEGIN, of(20), 12), 10, "{algorithm:?}: a higher one helps at once");
        let told = redis.check(BEGIN, &[of(5)])[0];
        assert_eq!((told.passes, told.left), (false, 0), "{algorithm:?}: a lower one does not wrap");
    }
}

#[test]
fn a_clock_that_goes_back_stands_still_and_no_key_stays_for_ever() {
    let mut redis = Redis::start();
    for (algorithm, key) in ALGORITHMS.into_iter().zip(["a", "b", "c"]) {
        let ask = asked(key, rule(algorithm, 60, Unit::Minute, None), 1);
        assert_eq!(passed(&mut redis, BEGIN, ask, 80), 60);
        let before = BEGIN - 3_600_000_000;
        assert_eq!(passed(&mut redis, before, ask, 10), 0, "{algorithm:?}");
        let ms: i64 = redis::cmd("PTTL").arg(key).query(&mut redis.connection).unwrap();
        assert!((1..=121_000).contains(&ms), "{algorithm:?} stays for {ms} ms");
    }
}
