//! Text from outside: whatever bucket values, names and zones hold, logs have one line an event, metrics stay readable,
//! and tables move no cursor.

use std::time::Duration;

use headworks_proto::wire;
use headworks_proto::wire::child_message::Message;
use headworks_proto::wire::tree_client::TreeClient;
use tokio_stream::wrappers::ReceiverStream;

use crate::harness::{Fleet, FleetPlan, LimitsFile, Node, Process, eventually, send};
use crate::metrics_text::faults;

const HOSTILE: &str = "x\"} 1\nevil_total{a=\"b\u{1b}]0;t\u{7}\r\nlevel=error msg=fake";
const PER_KEY: &str = "limits: [{name: each, per: [key], rate: 1000/second}]";
const QUICK: Duration = Duration::from_secs(5);

/// Percent-encoded, every byte of it.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// An event begins with its time, or is one object of JSON; nothing but its own line end is obeyed.
#[track_caller]
fn has_one_line_an_event(node: &Node) {
    for line in node.process.stderr.lines() {
        let dated = line.len() > 20 && line.as_bytes()[..4].iter().all(u8::is_ascii_digit);
        assert!(dated || is_json_event(&line), "{} has a line that is no event: {line:?}", node.id);
        assert!(
            !line.chars().any(char::is_control),
            "{} lets a control character through: {line:?}",
            node.id
        );
        assert!(line.len() < 2048, "{} has a line of {} bytes", node.id, line.len());
    }
}

/// With no value in it that a terminal would obey once it is read, and with the level that its writer gave it.
fn is_json_event(line: &str) -> bool {
    let Ok(serde_json::Value::Object(event)) = serde_json::from_str(line) else { return false };
    let has = |key: &str| event.get(key).is_some_and(serde_json::Value::is_string);
    let is_legible = |value: &serde_json::Value| !value.as_str().unwrap_or("").chars().any(char::is_control);
    let level = event.get("level").and_then(serde_json::Value::as_str);
    let known = level.is_some_and(|level| ["error", "warn", "info"].contains(&level));
    known && has("time") && has("message") && event.values().all(is_legible)
}

/// The names of the metrics that a node tells.
fn families(node: &Node) -> Vec<String> {
    let text = node.scrape().0;
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: Vec<_> = types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    names.sort();
    names
}

#[track_caller]
fn metrics_are_readable(node: &Node) {
    let text = node.scrape().0;
    assert!(!text.lines().any(|line| line.starts_with("evil_total")), "{}:\n{text}", node.id);
    let faults = faults(&text);
    assert!(faults.is_none(), "{}: {}\n{text}", node.id, faults.unwrap());
}

#[track_caller]
fn tables_are_legible(node: &Node) {
    let table = Process::run(["status", "--admin", &node.url("admin")], QUICK);
    assert!(table.status.success(), "{}", table.stderr);
    let obeyed = table.stdout.chars().any(|c| c.is_control() && c != '\n');
    assert!(!obeyed && !table.stdout.lines().any(|line| line.starts_with("evil_total")), "{}", table.stdout);
    assert!(table.stdout.lines().all(|line| line.chars().count() < 256), "{}", table.stdout);
}

#[track_caller]
fn all_is_legible(fleet: &Fleet) {
    for node in fleet.nodes() {
        has_one_line_an_event(node);
        metrics_are_readable(node);
        tables_are_legible(node);
    }
}

/// Controller and agent write JSON, the aggregator text.
fn in_both_formats() -> FleetPlan {
    let json = ["--log-format", "json"];
    FleetPlan::new(PER_KEY).zones(&[("a", 1)]).agents_with(&json).controllers_with(&json)
}

#[test]
fn zones_and_ids_that_look_like_metrics_stay_labels() {
    const ZONE: &str = "x\"} 1 \\n evil_total{a=\"b\\";
    let fleet = in_both_formats().zones(&[(ZONE, 1)]).start();
    all_is_legible(&fleet);
    let told = fleet.agents[0].scrape().0;
    let escaped = ZONE.replace('\\', "\\\\").replace('"', "\\\"");
    assert!(told.contains(&format!("zone=\"{escaped}\"")), "{told}");
    assert!(fleet.controller.status().0.to_string().contains("evil_total"), "zones are told as they are");
}

#[test]
fn hostile_values_stay_values() {
    let fleet = in_both_formats().start();
    let agent = &fleet.agents[0];
    let before: Vec<_> = fleet.nodes().map(families).collect();
    let long = "\u{1b}".repeat(1024);
    for value in [HOSTILE, &long, "\u{202e}txt", "東京"] {
        let answer = agent.get("http", &format!("/allow?key={}", encoded(value))).unwrap();
        assert_eq!(answer.status, 200, "{value:?}: {answer:?}");
    }
    eventually("the controller hears of them", QUICK, || {
        let limit = fleet.controller.status().limit("each").cloned().unwrap_or_default();
        let named =
            limit["top"].as_array().is_some_and(|top| top.iter().any(|top| top["values"][0] == HOSTILE));
        (limit["buckets"] != 4 || !named).then(|| limit.to_string())
    });
    all_is_legible(&fleet);
    assert_eq!(before, fleet.nodes().map(families).collect::<Vec<_>>(), "other metrics than before");
}

#[test]
fn what_is_no_text_or_too_long_is_refused_and_counts_nowhere() {
    let fleet = FleetPlan::new(PER_KEY).zones(&[("a", 1)]).start();
    let agent = &fleet.agents[0];
    for (query, status) in [
        ("key=%FF".to_owned(), 400),
        ("key=a%C3%28".to_owned(), 400),
        (format!("key={}", "x".repeat(1025)), 400),
        (format!("key={}", "x".repeat(1_000_000)), 431),
    ] {
        // A server that refuses a request may close before it has read all of it.
        match agent.get("http", &format!("/allow?{query}")) {
            Ok(answer) => assert_eq!(answer.status, status, "{:.20}", query),
            Err(error) => assert_eq!(status, 431, "{error}"),
        }
    }
    let offered = agent.scrape().of_limit("headworks_offered_total", "each");
    assert!(offered < 0.5, "{offered} counted");
    all_is_legible(&fleet);
}

#[test]
fn hostile_names_are_refused_where_they_are_given() {
    let limits =
        LimitsFile::new(&format!("limits: [{{name: {}, rate: 1/second}}]", serde_json::json!(HOSTILE)));
    let checked = Process::run(["limits", "check", &limits.path().display().to_string()], QUICK);
    assert_eq!(checked.status.code(), Some(64));
    assert!(!checked.stderr.chars().any(|c| c.is_control() && c != '\n'), "{:?}", checked.stderr);
    for flag in ["--id", "--zone", "--region"] {
        let args = ["agent", "--aggregators", "http://127.0.0.1:1", "--zone", "a", flag, HOSTILE];
        assert_eq!(Process::run(args, QUICK).status.code(), Some(64), "{flag}");
    }
    let fleet = in_both_formats().start();
    let target = format!("GET /{}", encoded(HOSTILE));
    assert_eq!(send(fleet.controller.address("admin"), &target, &[], "").unwrap().status, 404);
    let target = format!("POST /{}", encoded(HOSTILE));
    assert_eq!(send(fleet.controller.address("admin"), &target, &[], "").unwrap().status, 403);
    all_is_legible(&fleet);
}

fn hello(node: &str, zone: &str) -> wire::ChildMessage {
    let hello = wire::Hello {
        node: node.to_owned(),
        incarnation: 7,
        tier: wire::Tier::Aggregator.into(),
        zone: zone.to_owned(),
        ..wire::Hello::default()
    };
    wire::ChildMessage { message: Some(Message::Hello(hello)) }
}

fn report(limit: &str, value: &str) -> wire::ChildMessage {
    let key =
        wire::BucketKey { limit: limit.to_owned(), values: vec![value.to_owned()], ..Default::default() };
    let counts = wire::Entries { offered: vec![100], demand: vec![100.0], ..Default::default() };
    let report = wire::Report {
        sequence: 1,
        elapsed_micros: 1_000_000,
        full: true,
        agents: 1,
        named: vec![key],
        named_counts: Some(counts),
        ..Default::default()
    };
    wire::ChildMessage { message: Some(Message::Report(report)) }
}

/// Says these things to a parent as a child of it, and stays a while; what it answers to the stream.
fn say(parent: &Node, messages: Vec<wire::ChildMessage>) -> Result<(), tonic::Status> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = TreeClient::connect(parent.url("tree")).await.unwrap();
        let (outbox, outgoing) = tokio::sync::mpsc::channel(8);
        for message in messages {
            outbox.send(message).await.unwrap();
        }
        let mut plans = client.attach(ReceiverStream::new(outgoing)).await?.into_inner();
        while tokio::time::timeout(Duration::from_secs(1), plans.message())
            .await
            .is_ok_and(|plan| plan.is_ok())
        {
            if outbox.capacity() == outbox.max_capacity() {
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(())
    })
}

#[test]
fn hostile_names_from_the_wire_are_refused_or_stay_text() {
    let fleet = in_both_formats().start();
    for (node, zone) in [(HOSTILE, "z"), ("n", HOSTILE), (&"n".repeat(129), "z")] {
        let refused = say(&fleet.controller, vec![hello(node, zone)]).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused}");
    }
    for (limit, value) in [(HOSTILE, HOSTILE), ("each", HOSTILE), ("each", &"\u{1b}".repeat(1024))] {
        say(&fleet.controller, vec![hello("b\u{202e}c", "z"), report(limit, value)]).unwrap();
    }
    eventually("the controller has heard of it", QUICK, || {
        let text = fleet.controller.status().0.to_string();
        (!text.contains("evil_total")).then_some(text)
    });
    all_is_legible(&fleet);
}
