//! Bounds of the tree port: those who connect and never say hello go, and those who flood it harm nobody else.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use headworks_core::message::{Hello, Incarnation, Report, Tier};
use headworks_proto::wire::tree_client::TreeClient;
use tokio_stream::wrappers::ReceiverStream;

use crate::LIMIT_400;
use crate::harness::{Fleet, FleetPlan, Node, eventually};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The head of a TLS record that holds a ClientHello of 512 bytes, and a few of those.
const CLIENT_HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Silent connections, and as many that trickle, on each port.
const CROWD: usize = 100;
/// The promise is 30 s; a crowded machine needs a little more to notice.
const CLOSED: Duration = Duration::from_secs(35);

fn small_fleet() -> FleetPlan {
    FleetPlan::new(LIMIT_400).zones(&[("a", 1)])
}

/// Whether the other side has closed it. What it sent before is passed over.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

/// A connection that never gets as far as a hello.
struct Stranger {
    stream: TcpStream,
    trickles: bool,
}

/// Half of them silent; the other half will say a little now and then.
fn crowd(address: &str) -> Vec<Stranger> {
    let connect = |number: usize| {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        Stranger { stream, trickles: number.is_multiple_of(2) }
    };
    (0..2 * CROWD).map(connect).collect()
}

/// Each second a byte of a handshake, in the cleartext or in TLS: its head says that there is much to come.
fn trickle(strangers: &mut [Stranger], bytes: &[u8], second: usize) {
    let Some(byte) = bytes.get(second) else { return };
    for stranger in strangers.iter_mut().filter(|stranger| stranger.trickles) {
        let _ = stranger.stream.write(&[*byte]);
    }
}

/// Asks an agent all through a second; the longest that an answer took.
fn slowest_answer(agent: &Node) -> Duration {
    let ask = |_| {
        let asked = Instant::now();
        assert_eq!(agent.get("http", "/allow?key=K").unwrap().status, 200);
        let took = asked.elapsed();
        sleep(Duration::from_millis(50));
        took
    };
    (0..20).map(ask).max().unwrap_or_default()
}

/// Waits until all of them are closed; an agent must answer all the while.
#[track_caller]
fn all_are_closed(mut strangers: Vec<Stranger>, bytes: &[u8], agent: &Node) {
    let (start, mut second, mut slowest) = (Instant::now(), 0, Duration::ZERO);
    while !strangers.is_empty() {
        assert!(start.elapsed() < CLOSED, "{} are open after {CLOSED:?}", strangers.len());
        trickle(&mut strangers, bytes, second);
        second += 1;
        slowest = slowest.max(slowest_answer(agent));
        let before = strangers.len();
        strangers.retain_mut(|stranger| !is_closed(&mut stranger.stream));
        let slow_child_has_time = start.elapsed() > Duration::from_secs(5);
        assert!(strangers.len() == before || slow_child_has_time, "closed within {:?}", start.elapsed());
    }
    assert!(slowest < Duration::from_secs(1), "/allow took {slowest:?}");
}

fn attached(fleet: &Fleet) -> bool {
    fleet.agents[0].says("not attached") == 0 && fleet.aggregators[0].says("not attached") == 0
}

#[track_caller]
fn strangers_go_and_children_stay(fleet: &Fleet, bytes: &[u8]) {
    let mut strangers = crowd(fleet.aggregators[0].address("tree"));
    strangers.extend(crowd(fleet.controller.address("tree")));
    all_are_closed(strangers, bytes, &fleet.agents[0]);
    assert!(attached(fleet), "children lost their streams");
    assert_eq!(fleet.agents[0].status().state(), "fresh");
}

#[test]
fn connections_without_a_hello_are_closed() {
    let fleet = small_fleet().start();
    strangers_go_and_children_stay(&fleet, PREFACE);
    let silent = fleet.aggregators[0].scrape().value("headworks_tree_closed_total{cause=\"silent\"}");
    assert!(silent >= 2.0 * CROWD as f64, "{silent}");
}

#[test]
fn connections_without_a_hello_are_closed_over_tls_too() {
    let fleet = small_fleet().tls().start();
    strangers_go_and_children_stay(&fleet, CLIENT_HELLO);
    let late = fleet.aggregators[0].scrape().value("headworks_tls_refused_total{cause=\"timeout\"}");
    assert!(late >= 2.0 * CROWD as f64, "{late}");
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header without compression.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Opens a stream as a child does, and resets it.
fn open_and_reset(number: u32) -> Vec<u8> {
    let stream = 2 * number + 1;
    let head = [
        vec![0x83, 0x86],
        header(":path", "/headworks.v1.Tree/Attach"),
        header(":authority", "test"),
        header("content-type", "application/grpc"),
        header("te", "trailers"),
    ];
    [frame(1, 4, stream, &head.concat()), frame(3, 0, stream, &8_u32.to_be_bytes())].concat()
}

/// Opens and resets streams, so many with each write; how many were written until the connection was closed.
fn flood(address: &str, streams: u32, at_once: u32, pause: Duration) -> u32 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(PREFACE).unwrap();
    stream.set_nonblocking(true).unwrap();
    for first in (0..streams).step_by(usize::try_from(at_once).unwrap()) {
        let bytes: Vec<u8> = (first..first + at_once).flat_map(open_and_reset).collect();
        // What is not taken now is not taken any more either: a flood does not wait.
        let written = stream.write(&bytes);
        sleep(pause);
        if is_closed(&mut stream) || written.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            return first;
        }
    }
    streams
}

#[test]
fn rapid_resets_of_streams_end_the_connection_and_harm_nobody_else() {
    let fleet = small_fleet().start();
    let address = fleet.aggregators[0].address("tree");
    let rapid = flood(address, 10_000, 100, Duration::from_millis(2));
    assert!(rapid < 2000, "{rapid} streams were taken");
    let steady = flood(address, 10_000, 1, Duration::from_millis(2));
    assert!(steady < 2000, "{steady} streams were taken");
    // The HTTP/2 server has a bound of its own, which a flood that comes in bursts may meet first.
    eventually("a flood is ended for its number of streams, and counted", Duration::from_secs(20), || {
        flood(address, 1000, 1, Duration::from_millis(3));
        let closed = fleet.aggregators[0].scrape().value("headworks_tree_closed_total{cause=\"streams\"}");
        (closed < 1.0).then(|| "none is".to_owned())
    });
    assert!(attached(&fleet), "a child lost its stream");
    assert_eq!(fleet.agents[0].status().state(), "fresh");
}

/// What a child of the fleets here says first.
pub(crate) fn hello() -> Hello {
    Hello {
        node: "flood".to_owned(),
        incarnation: Incarnation(1),
        tier: Tier::Agent,
        zone: "a".to_owned(),
        region: String::new(),
        version: "test".to_owned(),
        previous_parent: None,
        previous_incarnation: None,
        limits: None,
        switch: headworks_core::switch::Switch::default(),
    }
}

/// Reports for so long, with such gaps between; how many times, until the parent ended it.
async fn report(url: String, gap: Duration, duration: Duration) -> u64 {
    let mut client = TreeClient::connect(url).await.unwrap();
    let (say, said) = tokio::sync::mpsc::channel(1);
    say.send(headworks_proto::hello_message(&hello())).await.unwrap();
    let mut plans = client.attach(ReceiverStream::new(said)).await.unwrap().into_inner();
    tokio::spawn(async move { while plans.message().await.is_ok_and(|plan| plan.is_some()) {} });
    let (start, mut sequence) = (Instant::now(), 0);
    while start.elapsed() < duration {
        let report = Report {
            sequence,
            elapsed: start.elapsed(),
            full: false,
            agents: 1,
            entries: Vec::new(),
            forgotten: Vec::new(),
            switch: None,
        };
        if say.send(headworks_proto::report_message(&report)).await.is_err() {
            break;
        }
        sequence += 1;
        tokio::time::sleep(gap).await;
    }
    sequence
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_child_that_reports_far_too_often_is_slowed_and_others_are_not() {
    let fleet = small_fleet().start();
    let parent = &fleet.aggregators[0];
    let reports = report(parent.url("tree"), Duration::from_millis(2), Duration::from_secs(5));
    let sent = runtime().block_on(reports);
    let throttled = parent.scrape().value("headworks_reports_throttled_total");
    assert!(throttled > 100.0, "{throttled} of {sent}");
    others_are_well(&fleet);
}

#[test]
fn a_child_that_floods_is_cut_off_and_others_are_not() {
    let fleet = small_fleet().start();
    let (start, url) = (Instant::now(), fleet.aggregators[0].url("tree"));
    let sent = runtime().block_on(report(url, Duration::ZERO, Duration::from_secs(60)));
    assert!(start.elapsed() < Duration::from_secs(30), "{sent} reports were taken");
    others_are_well(&fleet);
}

/// Only the agent that belongs there is left, and it never lost its stream.
#[track_caller]
fn others_are_well(fleet: &Fleet) {
    assert_eq!(fleet.agents[0].status().state(), "fresh");
    eventually("the flood is gone", Duration::from_secs(10), || {
        let agents = fleet.aggregators[0].status().agents();
        (agents != 1).then(|| format!("{agents} agents"))
    });
    assert!(attached(fleet));
}
