//! Exact limits in one process: an agent without a control plane.

use std::time::{Duration, Instant};

use crate::harness::{Answer, Figure, LimitsFile, Load, Loads, Node, Process, eventually};

const TEN: &str = "
limits:
  - name: per-key
    per: [key]
    rate: 10/second
    burst: 10
    enforcement: exact
    overrides:
      - {match: {key: tenant-a}, rate: 100/second, burst: 200}
";

fn standalone(limits: &LimitsFile) -> Node {
    let path = limits.path().display().to_string();
    let node = Node::start("agent", "alone", &["--standalone", "--limits", &path].map(str::to_owned));
    assert_eq!(node.get("http", "/readyz").unwrap().status, 200);
    node
}

#[track_caller]
fn ask(node: &Node, query: &str) -> Answer {
    node.get("http", &format!("/allow?{query}")).unwrap()
}

/// How many of some requests passed.
fn passed(node: &Node, query: &str, n: usize) -> usize {
    (0..n).filter(|_| ask(node, query).status == 200).count()
}

fn seconds(answer: &Answer) -> u64 {
    let line = answer.head.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn twelve_quick_requests_give_ten_and_two_refusals() {
    let limits = LimitsFile::new(TEN);
    let node = standalone(&limits);
    let begun = Instant::now();
    let answers: Vec<Answer> = (0..12).map(|_| ask(&node, "key=t")).collect();
    assert!(begun.elapsed() < Duration::from_millis(100), "too slow to tell: {:?}", begun.elapsed());
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert_eq!((answers.len() - refused.len(), refused.len()), (10, 2), "{answers:?}");
    assert_eq!(answers[0].json()["remaining"], 9);
    assert!(answers[0].head.contains("x-ratelimit-limit: 10"), "{:?}", answers[0]);
    for answer in refused {
        assert!(
            answer.json()["retry_after_ms"].as_u64().is_some_and(|ms| (1..=100).contains(&ms)),
            "{answer:?}"
        );
        assert_eq!((seconds(answer), answer.json()["limit_name"].as_str()), (1, Some("per-key")));
        assert!(answer.head.contains("x-ratelimit-remaining: 0"), "{answer:?}");
    }
}

#[test]
fn an_override_has_its_own_rate_and_burst() {
    let limits = LimitsFile::new(TEN);
    let node = standalone(&limits);
    let begun = Instant::now();
    let passed = passed(&node, "key=tenant-a", 400);
    let most = 200.0 + 100.0 * begun.elapsed().as_secs_f64();
    assert!((200.0..=most + 1.0).contains(&(passed as f64)), "{passed} of at most {most}");
}

#[test]
fn an_override_is_rehearsed_or_off_while_its_limit_is_enforced() {
    let limits = LimitsFile::new(
        "limits: [{name: t, per: [key], rate: 3/minute, enforcement: exact, overrides: [
           {match: {key: \"trial-*\"}, rate: 2/minute, mode: shadow}, {match: {key: staff}, rate: 2/minute, mode: off}]}]",
    );
    let node = standalone(&limits);
    let each = ["any", "trial-a", "staff"].map(|key| passed(&node, &format!("key={key}"), 10));
    assert_eq!(each, [3, 10, 10]);
    let free = ask(&node, "key=staff");
    assert_eq!(free.body, r#"{"allowed":true}"#);
    let seen = node.scrape();
    let [offered, dropped, would_drop] = ["offered", "dropped", "would_drop"]
        .map(|what| seen.of_limit(&format!("headworks_{what}_total"), "t"));
    Figure::new("offered", offered).is_near(20.0, 0.1);
    Figure::new("dropped", dropped).is_near(7.0, 0.1);
    Figure::new("would be dropped", would_drop).is_near(8.0, 0.1);
}

#[test]
fn clients_that_share_a_key_get_its_rate_and_its_burst_in_sum() {
    let limits = LimitsFile::new(TEN);
    let node = standalone(&limits);
    let begun = Instant::now();
    let loads = [20.0; 3].map(|rps| Load::new(&node.url("http"), rps));
    let tallies = Loads::start(&loads, Duration::from_secs(8)).finish();
    let elapsed = begun.elapsed().as_secs_f64();
    let allowed: u64 = tallies.iter().map(|tally| tally.total.allowed).sum();
    // From the first request, some tenths after the start, to the last one.
    Figure::new("allowed", allowed as f64).is_near(10.0 + 10.0 * elapsed.min(8.0), 2.0);
    for tally in &tallies {
        let allowed_here = tally.total.allowed;
        // A third, as far as chance goes; in step with each other, one would have nearly all.
        assert!(
            (allowed / 8..=allowed * 5 / 8).contains(&allowed_here),
            "no fair part of {allowed}: {tally}"
        );
    }
}

#[test]
fn a_steady_client_at_the_rate_of_a_minute_is_not_refused() {
    let limits =
        LimitsFile::new("limits: [{name: t, per: [key], rate: 600/minute, burst: 5, enforcement: exact}]");
    let node = standalone(&limits);
    let tallies = Loads::start(&[Load::new(&node.url("http"), 10.0)], Duration::from_secs(6)).finish();
    let total = tallies[0].total;
    assert!(total.attempts == 60 && total.allowed >= 59, "{}", tallies[0]);
}

#[test]
fn many_refusals_in_a_row_tell_what_is_left_of_the_minute() {
    let limits = LimitsFile::new("limits: [{name: t, per: [key], rate: 1/minute, enforcement: exact}]");
    let node = standalone(&limits);
    assert_eq!(ask(&node, "key=k").status, 200);
    let begun = Instant::now();
    let answers: Vec<Answer> = (0..200).map(|_| ask(&node, "key=k")).collect();
    let least = 60 - begun.elapsed().as_secs() - 1;
    for answer in answers {
        assert_eq!(answer.status, 429, "{answer:?}");
        assert!((least..=60).contains(&seconds(&answer)), "{answer:?}");
    }
}

#[test]
fn status_metrics_and_stats_tell_of_it() {
    let limits = LimitsFile::new(TEN);
    let node = standalone(&limits);
    passed(&node, "key=t", 12);
    let stats = node.get("http", "/stats").unwrap().json();
    assert_eq!(
        (&stats["plan"]["state"], &stats["limits"][0]["offered"]),
        (&"fresh".into(), &12.into()),
        "{stats}"
    );
    assert!(node.scrape().of_limit("headworks_dropped_total", "per-key") >= 1.0);
    let status = node.status();
    assert_eq!(status.limit("per-key").unwrap()["buckets"], 1);
    eventually("the idle bucket is swept", Duration::from_secs(10), || {
        let limit = node.status().limit("per-key").cloned().unwrap_or_default();
        (limit["buckets"] != 0).then(|| limit.to_string())
    });
}

const EDGES: &str = "
limits:
  - {name: hundred, per: [a], rate: 100/minute, enforcement: exact}
  - {name: hour, per: [b], rate: 10/hour, enforcement: exact}
  - {name: month, per: [c], rate: 1/month, enforcement: exact, algorithm: sliding_window}
  - {name: banned, per: [d], rate: 0/second, enforcement: exact}
  - {name: steady, per: [e], rate: 2/second, enforcement: exact}
";

#[test]
fn costs_are_taken_whole_looked_at_and_bounded() {
    let limits = LimitsFile::new(EDGES);
    let node = standalone(&limits);
    assert_eq!(ask(&node, "key=k&a=x&n=0").json()["remaining"], 100);
    let statuses = [30, 30, 30, 30, 10].map(|n| ask(&node, &format!("key=k&a=x&n={n}")).status);
    assert_eq!(statuses, [200, 200, 200, 429, 200]);
    let look = ask(&node, "key=k&a=x&n=0");
    assert_eq!((look.status, look.json()["remaining"].as_u64()), (429, Some(0)), "{look:?}");
    let dear = ask(&node, "key=k&a=y&n=101");
    assert_eq!(dear.status, 400);
    assert!(dear.json()["error"].as_str().is_some_and(|text| text.contains("101 is above 100")), "{dear:?}");
    assert_eq!(ask(&node, "key=k&a=y&n=4294967295").status, 400);
    assert_eq!(ask(&node, "key=k&a=y&n=100").status, 200, "what never passes takes nothing");
    assert_eq!(ask(&node, "key=k&a=w").json()["remaining"], 99, "without a cost it is one");
    assert_eq!(ask(&node, "key=k&a=z&n=-1").status, 400);
    assert_eq!(ask(&node, "key=k&n=0").status, 400, "nothing to look at");
}

#[test]
fn retry_after_is_whole_seconds_up_to_the_unit() {
    let limits = LimitsFile::new(EDGES);
    let node = standalone(&limits);
    passed(&node, "key=k&b=x", 10);
    let refused = ask(&node, "key=k&b=x");
    // The moment to come back is spread over a quarter of the wait.
    assert!((355..=450).contains(&seconds(&refused)), "{refused:?}");
    passed(&node, "key=k&c=x", 1);
    let refused = ask(&node, "key=k&c=x");
    assert!((2_591_990..=2_592_000).contains(&seconds(&refused)), "{refused:?}");
    let banned = ask(&node, "key=k&d=x");
    assert_eq!(banned.status, 429);
    assert!(!banned.head.contains("retry-after") && !banned.body.contains("retry_after"), "{banned:?}");
    // An inverted unit would give one in two seconds.
    passed(&node, "key=k&e=x", 3);
    let refused = ask(&node, "key=k&e=x").json();
    std::thread::sleep(Duration::from_millis(refused["retry_after_ms"].as_u64().unwrap()));
    assert_eq!(ask(&node, "key=k&e=x").status, 200, "after {refused}");
}

#[test]
fn a_raised_limit_helps_at_once_and_a_cut_one_does_not_wrap() {
    let of = |amount| format!("limits: [{{name: t, per: [key], rate: {amount}/hour, enforcement: exact}}]");
    let limits = LimitsFile::new(&of(10));
    let node = standalone(&limits);
    assert_eq!((passed(&node, "key=a", 50), passed(&node, "key=b", 1)), (10, 1));
    let in_force = |limit: u64| {
        eventually("the new limit holds", Duration::from_secs(5), || {
            let look = ask(&node, "key=look&n=0");
            (look.json()["limit"] != limit).then_some(look.body)
        });
    };
    limits.write(&of(20));
    in_force(20);
    assert_eq!(passed(&node, "key=a", 12), 10);
    limits.write(&of(5));
    in_force(5);
    let refused = ask(&node, "key=a");
    assert_eq!((refused.status, refused.json()["remaining"].as_u64()), (429, Some(0)), "{refused:?}");
    limits.write("limits: [{name: t, rate: 10/hour}]");
    eventually("a limit without a controller is refused", Duration::from_secs(5), || {
        (node.scrape().value("headworks_limits_load_errors_total") < 1.0).then(|| "not yet".to_owned())
    });
    assert_eq!(ask(&node, "key=b").json()["limit"], 5, "the old limits stay");
}

#[test]
fn limits_that_need_a_controller_are_refused_at_the_start() {
    let limits = LimitsFile::new("limits: [{name: t, rate: 10/hour}]");
    let path = limits.path().display().to_string();
    let ended = Process::run(["agent", "--standalone", "--limits", &path], Duration::from_secs(10));
    assert_eq!(ended.status.code(), Some(64), "{}", ended.stderr);
    assert!(ended.stderr.contains("add `enforcement: exact`"), "{}", ended.stderr);
    let ended = Process::run(["agent", "--standalone"], Duration::from_secs(10));
    assert_eq!(ended.status.code(), Some(64), "{}", ended.stderr);
}
