//! Exact limits counted in a real Redis, by agents that share it.

use std::time::{Duration, Instant};

use crate::harness::{
    Figure, LimitsFile, Load, Loads, Node, Pki, Process, Redis, Tally, eventually, free_port,
};

/// An agent without a control plane that counts in this Redis, and waits for it as long as a machine may be busy.
fn agent(id: &str, limits: &LimitsFile, redis: &str, more: &[&str]) -> Node {
    let path = limits.path().display().to_string();
    let mut args = ["--standalone", "--limits", &path, "--store", redis].map(str::to_owned).to_vec();
    if !more.contains(&"--store-deadline") {
        args.extend(["--store-deadline", "1s"].map(str::to_owned));
    }
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    Node::start("agent", id, &args)
}

fn connected(id: &str, limits: &LimitsFile, redis: &str, more: &[&str]) -> Node {
    let node = agent(id, limits, redis, more);
    counts(&node);
    node
}

/// Waits until it counts in its Redis.
#[track_caller]
fn counts(node: &Node) {
    eventually("the store answers", Duration::from_secs(10), || {
        (node.scrape().value("headworks_store_up") < 1.0).then(|| node.process.stderr.tail())
    });
}

fn agents<const N: usize>(limits: &LimitsFile, redis: &Redis) -> [Node; N] {
    std::array::from_fn(|i| connected(&format!("a{i}"), limits, &redis.url(), &[]))
}

#[track_caller]
fn allow(node: &Node, query: &str) -> (u16, serde_json::Value) {
    let answer = node.get("http", &format!("/allow?{query}")).unwrap();
    (answer.status, answer.json())
}

fn passed(node: &Node, query: &str, n: usize) -> usize {
    (0..n).filter(|_| allow(node, query).0 == 200).count()
}

#[track_caller]
fn every_key_expires(redis: &Redis) {
    for key in redis.keys() {
        // -2 is a key that expired just now.
        let ms: i64 = redis.ask(&format!("PTTL {key}")).parse().unwrap();
        assert!(ms > 0 || ms == -2, "{key} stays for ever: {ms}");
    }
}

#[test]
fn four_agents_admit_one_rate_and_one_burst_between_them() {
    let limits = LimitsFile::new("limits: [{name: t, rate: 300/second, burst: 300, enforcement: exact}]");
    let redis = Redis::start();
    let nodes: [Node; 4] = agents(&limits, &redis);
    let loads: Vec<Load> = nodes.iter().map(|node| Load::new(&node.url("http"), 225.0)).collect();
    let tallies = Loads::start(&loads, Duration::from_secs(10)).finish();
    let sum = Tally::sum(&tallies);
    let most = 300.0 * 10.0 + 300.0;
    let admitted = Figure::new("admitted", sum.total.allowed as f64);
    assert_eq!(sum.total.errors, 0, "{sum}");
    // Loads start some hundredths of a second apart.
    admitted.is_near(most, 0.01 * most + 300.0 * 0.05);
    every_key_expires(&redis);
}

#[test]
fn flat_out_no_request_is_lost_in_one_millisecond_with_another() {
    for (algorithm, burst) in [("token_bucket", ", burst: 200"), ("sliding_window", ""), ("fixed_window", "")]
    {
        let limits = LimitsFile::new(&format!(
            "limits: [{{name: t, rate: 200/day, enforcement: exact, algorithm: {algorithm}{burst}}}]"
        ));
        let redis = Redis::start();
        let nodes: [Node; 2] = agents(&limits, &redis);
        let loads = nodes.each_ref().map(|node| Load::flat_out(&node.url("http"), 8));
        let tallies = Loads::start(&loads, Duration::from_secs(1)).finish();
        let sum = Tally::sum(&tallies);
        assert!(sum.total.attempts > 2000 && sum.total.errors == 0, "{sum}");
        assert_eq!(sum.total.allowed, 200, "{algorithm}");
    }
}

/// Short, for what is to be seen when it passes.
const DEADLINE: [&str; 2] = ["--store-deadline", "100ms"];

const OPEN_AND_CLOSED: &str = "
limits:
  - {name: open, match: {way: open}, rate: 5/minute, enforcement: exact}
  - {name: closed, match: {way: closed}, rate: 5/minute, enforcement: exact, on_store_failure: closed}
";

#[test]
fn while_redis_is_dead_limits_answer_as_they_were_told_and_count_again_when_it_is_back() {
    let limits = LimitsFile::new(OPEN_AND_CLOSED);
    let mut redis = Redis::start();
    let node = connected("a", &limits, &redis.url(), &DEADLINE);
    assert_eq!((passed(&node, "key=k&way=open", 8), passed(&node, "key=k&way=closed", 8)), (5, 5));
    redis.kill();
    let loads = ["way=open", "way=closed"].map(|way| Load::new(&node.url("http"), 200.0).with(way));
    let tallies = Loads::start(&loads, Duration::from_secs(2)).finish();
    let [open, closed] = [&tallies[0], &tallies[1]];
    // A few may still have been refused by what was known.
    assert!(open.total.errors == 0 && open.total.denied <= 220, "{open}");
    assert!(closed.total.errors == 0 && closed.total.allowed == 0, "{closed}");
    for tally in [open, closed] {
        assert!(tally.slowest < Duration::from_millis(700), "{tally}");
    }
    let (status, body) = allow(&node, "key=k&way=closed");
    assert_eq!(
        (status, body["counted"].as_bool(), body["retry_after_ms"].as_u64()),
        (429, Some(false), Some(1000))
    );
    let (status, body) = allow(&node, "key=k&way=open");
    assert_eq!(
        (status, body["counted"].as_bool(), body["remaining"].is_null()),
        (200, Some(false), true),
        "{body}"
    );
    assert_eq!(node.scrape().value("headworks_store_up"), 0.0);
    assert!(node.scrape().value("headworks_store_failures_total{cause=\"away\"}") > 100.0);
    redis.restart();
    let back = Instant::now();
    counts(&node);
    assert!(back.elapsed() < Duration::from_secs(4), "{:?}", back.elapsed());
    assert_eq!(passed(&node, "key=k&way=closed", 8), 5, "Redis came back empty");
    assert_eq!(node.says("the store of exact limits went away"), 1);
    every_key_expires(&redis);
}

#[test]
fn a_redis_that_hangs_is_waited_for_a_few_times_and_then_not_asked() {
    let limits = LimitsFile::new(OPEN_AND_CLOSED);
    let redis = Redis::start();
    let node = connected("a", &limits, &redis.url(), &DEADLINE);
    assert_eq!(allow(&node, "key=k&way=open").0, 200);
    redis.signal("STOP");
    let load = Load::new(&node.url("http"), 100.0).with("way=open");
    let tally = Loads::start(&[load], Duration::from_secs(2)).finish().remove(0);
    redis.signal("CONT");
    assert_eq!((tally.total.denied, tally.total.errors), (0, 0), "{tally}");
    assert!(tally.slowest < Duration::from_millis(700), "{tally}");
    let timeouts = node.scrape().value("headworks_store_failures_total{cause=\"timeout\"}");
    assert!((1.0..=20.0).contains(&timeouts), "the breaker lets {timeouts} requests wait");
    counts(&node);
}

#[test]
fn an_agent_starts_without_its_redis_and_finds_it_later() {
    let limits = LimitsFile::new(OPEN_AND_CLOSED);
    let mut redis = Redis::start();
    redis.kill();
    let node = agent("a", &limits, &redis.url(), &[]);
    assert_eq!((allow(&node, "key=k&way=open").0, allow(&node, "key=k&way=closed").0), (200, 429));
    assert_eq!(node.says("the store of exact limits is away"), 1);
    redis.restart();
    counts(&node);
    assert_eq!(passed(&node, "key=k&way=closed", 8), 5);
}

#[test]
fn a_flood_on_a_spent_key_is_answered_without_a_hop_and_nobody_else_pays() {
    let limits = LimitsFile::new("limits: [{name: t, per: [key], rate: 10/second, enforcement: exact}]");
    let redis = Redis::start();
    let [node] = agents(&limits, &redis);
    let tally =
        Loads::start(&[Load::flat_out(&node.url("http"), 32)], Duration::from_secs(3)).finish().remove(0);
    let calls = redis.calls("evalsha");
    assert!(tally.total.attempts > 5000, "{tally}");
    assert!(calls * 50 <= tally.total.attempts, "{calls} calls for {} requests", tally.total.attempts);
    Figure::new("admitted", tally.total.allowed as f64).is_near(10.0 + 10.0 * 3.0, 3.0);
    passed(&node, "key=K", 10);
    let (status, body) = allow(&node, "key=K");
    assert_eq!((status, body["remaining"].as_u64()), (429, Some(0)), "{body}");
    assert!((1..=100).contains(&body["retry_after_ms"].as_u64().unwrap()), "{body}");
    assert_eq!(passed(&node, "key=other", 10), 10);
    assert!(node.scrape().value("headworks_store_spared_total") > 4000.0);
}

#[test]
fn a_raised_limit_helps_at_once_also_where_a_spent_key_is_remembered() {
    let of = |amount| format!("limits: [{{name: t, per: [key], rate: {amount}/hour, enforcement: exact}}]");
    let limits = LimitsFile::new(&of(10));
    let redis = Redis::start();
    let [node, other] = agents(&limits, &redis);
    assert_eq!(
        (passed(&node, "key=a", 50), passed(&node, "key=b", 1), passed(&other, "key=a", 5)),
        (10, 1, 0)
    );
    limits.write(&of(20));
    for node in [&node, &other] {
        eventually("the new limit holds", Duration::from_secs(5), || {
            let (_, body) = allow(node, "key=look&n=0");
            (body["limit"] != 20).then(|| body.to_string())
        });
    }
    assert_eq!(passed(&node, "key=a", 6) + passed(&other, "key=a", 6), 10);
}

const SEVERAL: &str = "
limits:
  - {name: tenant, per: [tenant], rate: 3/hour, enforcement: exact}
  - {name: route, per: [route], rate: 5/hour, enforcement: exact, algorithm: fixed_window}
  - {name: all, rate: 100/hour, enforcement: exact, algorithm: sliding_window}
  - {name: watched, per: [tenant], rate: 1/hour, enforcement: exact, mode: shadow}
  - {name: banned, match: {tenant: evil}, rate: 0/second, enforcement: exact}
";

#[test]
fn a_request_that_one_limit_refuses_is_charged_to_none() {
    let limits = LimitsFile::new(SEVERAL);
    let redis = Redis::start();
    let [node] = agents(&limits, &redis);
    let left = |query: &str| {
        let (_, body) = allow(&node, &format!("key=k&n=0&{query}"));
        (body["limit_name"].as_str().unwrap().to_owned(), body["remaining"].as_u64().unwrap())
    };
    assert_eq!(passed(&node, "key=k&tenant=a&route=x", 10), 3);
    assert_eq!(left("route=x"), ("route".to_owned(), 2), "the tenant's refusals took nothing");
    assert_eq!(passed(&node, "key=k&tenant=b&route=x", 10), 2);
    assert_eq!(left("tenant=b"), ("tenant".to_owned(), 1), "nor did the route's");
    assert_eq!(left("none=x"), ("all".to_owned(), 95));
    assert_eq!(passed(&node, "key=k&tenant=evil", 3), 0);
    let (_, ban) = allow(&node, "key=k&tenant=evil");
    assert_eq!((ban["remaining"].as_u64(), ban["limit"].as_u64()), (Some(0), Some(0)), "{ban}");
    assert_eq!(left("none=x"), ("all".to_owned(), 95));
    let scrape = node.scrape();
    assert_eq!(scrape.of_limit("headworks_would_drop_total", "watched"), 3.0, "{}", scrape.0);
    assert_eq!(scrape.of_limit("headworks_dropped_total", "route"), 8.0);
    let dear = node.get("http", "/allow?key=k&tenant=a&n=4").unwrap();
    assert_eq!(dear.status, 400, "{dear:?}");
    assert_eq!(allow(&node, "key=k&tenant=c&route=y&n=3").0, 200);
}

#[test]
fn one_odd_key_harms_only_its_own_bucket_and_scripts_may_be_flushed() {
    let limits = LimitsFile::new("limits: [{name: t, per: [key], rate: 5/hour, enforcement: exact}]");
    let redis = Redis::start();
    let [node] = agents(&limits, &redis);
    redis.ask("RPUSH {headworks}:t:t:odd x");
    let (status, body) = allow(&node, "key=odd");
    assert_eq!((status, body["counted"].as_bool()), (200, Some(false)), "{body}");
    redis.ask("SCRIPT FLUSH");
    assert_eq!(passed(&node, "key=k", 10), 5);
    assert_eq!(node.scrape().value("headworks_store_up"), 1.0);
    assert_eq!(node.scrape().value("headworks_store_failures_total{cause=\"error\"}"), 1.0);
    assert!(redis.keys().contains(&"{headworks}:t:t:k".to_owned()), "{:?}", redis.keys());
}

#[test]
fn a_cluster_keeps_all_keys_of_a_request_on_one_node_which_is_found() {
    let limits = LimitsFile::new(SEVERAL);
    let nodes = [Redis::cluster_node(), Redis::cluster_node()];
    nodes[0].ask("CLUSTER ADDSLOTSRANGE 0 8191");
    nodes[1].ask("CLUSTER ADDSLOTSRANGE 8192 16383");
    let bus = nodes[1].ask("CONFIG GET cluster-port").lines().last().unwrap().to_owned();
    nodes[0].ask(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", nodes[1].port()));
    for node in &nodes {
        eventually("the cluster is up", Duration::from_secs(20), || {
            let info = node.ask("CLUSTER INFO");
            (!info.contains("cluster_state:ok")).then_some(info)
        });
    }
    let agents =
        nodes.each_ref().map(|redis| connected("a", &limits, &redis.url(), &["--store-prefix", "mine"]));
    assert_eq!(passed(&agents[0], "key=k&tenant=a&route=x", 2), 2);
    assert_eq!(passed(&agents[1], "key=k&tenant=a&route=x", 5), 1);
    let keys = nodes.each_ref().map(Redis::keys);
    assert!(keys.iter().any(Vec::is_empty), "{keys:?}");
    assert!(keys.iter().flatten().all(|key| key.starts_with("{mine}:")), "{keys:?}");
}

#[test]
fn over_tls_each_shows_the_other_who_it_is() {
    let limits = LimitsFile::new(OPEN_AND_CLOSED);
    let pki = Pki::new();
    let path = |name: &str| pki.controller.path(name).display().to_string();
    let (cert, key, ca) = (path("tls.crt"), path("tls.key"), path("ca.crt"));
    let port = free_port().to_string();
    let _redis = Redis::with(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
    ]);
    let url = format!("rediss://localhost:{port}");
    let own = |name: &str| pki.agent.path(name).display().to_string();
    let (own_cert, own_key) = (own("tls.crt"), own("tls.key"));
    let shown = ["--store-ca", &ca, "--store-cert", &own_cert, "--store-key", &own_key];
    let known = connected("known", &limits, &url, &shown);
    assert_eq!(passed(&known, "key=k&way=closed", 8), 5);
    for (id, less) in [("nameless", &shown[..2]), ("trustless", &[])] {
        let agent = agent(id, &limits, &url, less);
        assert_eq!(allow(&agent, "key=k&way=closed").0, 429, "{id}");
        eventually("it says so", Duration::from_secs(10), || {
            (agent.says("is away") != 1).then(|| agent.process.stderr.tail())
        });
    }
}

#[test]
fn what_a_redis_has_a_password_for_is_told_to_nobody() {
    let limits = LimitsFile::new(OPEN_AND_CLOSED);
    let redis = Redis::with(&["--requirepass", "s3cret-word"]);
    let port = redis.port();
    let right = connected("right", &limits, &format!("redis://:s3cret-word@127.0.0.1:{port}"), &[]);
    assert_eq!(passed(&right, "key=k&way=open", 8), 5);
    let wrong = agent("wrong", &limits, &format!("redis://:other-word@127.0.0.1:{port}"), &[]);
    assert_eq!(allow(&wrong, "key=k&way=closed").0, 429);
    assert_eq!((wrong.says("is away"), wrong.says("other-word"), right.says("s3cret-word")), (1, 0, 0));
}

#[test]
fn an_address_that_is_none_is_refused_at_the_start() {
    let limits = LimitsFile::new(OPEN_AND_CLOSED);
    let path = limits.path().display().to_string();
    for address in ["localhost:6379", "http://127.0.0.1:1", "redis://:s3cret@"] {
        let args = ["agent", "--standalone", "--limits", &path, "--store", address];
        let ended = Process::run(args, Duration::from_secs(10));
        assert_eq!(ended.status.code(), Some(64), "{address}: {}", ended.stderr);
        assert!(ended.stderr.contains("--store") && !ended.stderr.contains("s3cret"), "{}", ended.stderr);
    }
}
