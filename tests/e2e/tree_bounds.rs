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

/// Connections that will be closed.
fn crowd(address: &str) -> Vec<TcpStream> {
    let connect = |_| {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    (0..2 * CROWD).map(connect).collect()
}

/// Lets the second half of each crowd say a little, until all are closed; an agent must answer all the while.
#[track_caller]
fn all_are_closed(mut streams: Vec<TcpStream>, agent: &Node) {
    let (start, mut said) = (Instant::now(), 0);
    let mut slowest = Duration::ZERO;
    while !streams.is_empty() {
        assert!(start.elapsed() < CLOSED, "{} are open after {CLOSED:?}", streams.len());
        for (number, stream) in streams.iter_mut().enumerate() {
            if number % 2 == 1 && said < PREFACE.len() {
                let _ = stream.write(&PREFACE[said..=said]);
            }
        }
        said += 1;
        for _ in 0..20 {
            let asked = Instant::now();
            assert_eq!(agent.get("http", "/allow?key=K").unwrap().status, 200);
            slowest = slowest.max(asked.elapsed());
            sleep(Duration::from_millis(50));
        }
        streams.retain_mut(|stream| !is_closed(stream));
    }
    assert!(slowest < Duration::from_secs(1), "/allow took {slowest:?}");
    assert!(start.elapsed() > Duration::from_secs(5), "a slow child has time to say hello");
}

fn attached(fleet: &Fleet) -> bool {
    fleet.agents[0].says("not attached") == 0 && fleet.aggregators[0].says("not attached") == 0
}

#[track_caller]
fn strangers_go_and_children_stay(fleet: &Fleet) {
    let mut streams = crowd(fleet.aggregators[0].address("tree"));
    streams.extend(crowd(fleet.controller.address("tree")));
    all_are_closed(streams, &fleet.agents[0]);
    assert!(attached(fleet), "children lost their streams");
    assert_eq!(fleet.agents[0].status().state(), "fresh");
}

#[test]
fn connections_without_a_hello_are_closed() {
    let fleet = small_fleet().start();
    strangers_go_and_children_stay(&fleet);
    let silent = fleet.aggregators[0].scrape().value("headworks_tree_closed_total{cause=\"silent\"}");
    assert!(silent >= CROWD as f64, "{silent}");
}

#[test]
fn connections_without_a_hello_are_closed_over_tls_too() {
    let fleet = small_fleet().tls().start();
    strangers_go_and_children_stay(&fleet);
    let late = fleet.aggregators[0].scrape().value("headworks_tls_refused_total{cause=\"timeout\"}");
    assert!(late >= CROWD as f64, "{late}");
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
    let closed = fleet.aggregators[0].scrape().value("headworks_tree_closed_total{cause=\"streams\"}");
    assert!(closed >= 1.0, "{closed}");
    assert!(attached(&fleet), "a child lost its stream");
    assert_eq!(fleet.agents[0].status().state(), "fresh");
}

fn hello() -> Hello {
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
    }
}

/// Reports as fast as they are taken; how many were.
async fn report_without_end(url: String, duration: Duration) -> u64 {
    let mut client = TreeClient::connect(url).await.unwrap();
    let (say, said) = tokio::sync::mpsc::channel(1);
    say.send(headworks_proto::hello_message(&hello())).await.unwrap();
    let mut plans = client.attach(ReceiverStream::new(said)).await.unwrap().into_inner();
    tokio::spawn(async move { while plans.message().await.is_ok_and(|plan| plan.is_some()) {} });
    let (start, mut sequence) = (Instant::now(), 0);
    while start.elapsed() < duration {
        sequence += 1;
        let report =
            Report { sequence, elapsed: start.elapsed(), full: false, agents: 1, entries: Vec::new() };
        let sent = say.send(headworks_proto::report_message(&report));
        if tokio::time::timeout(Duration::from_millis(200), sent).await.is_ok_and(|sent| sent.is_err()) {
            break;
        }
    }
    sequence
}

#[test]
fn a_child_that_reports_without_end_is_slowed_and_others_are_not() {
    let fleet = small_fleet().start();
    let parent = &fleet.aggregators[0];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sent = runtime.block_on(report_without_end(parent.url("tree"), Duration::from_secs(10)));
    let throttled = parent.scrape().value("headworks_reports_throttled_total");
    assert!(throttled > 100.0, "{throttled} of {sent}");
    assert_eq!(fleet.agents[0].status().state(), "fresh");
    eventually("the flood is gone", Duration::from_secs(10), || {
        let agents = parent.status().agents();
        (agents != 1).then(|| format!("{agents} agents"))
    });
    assert!(attached(&fleet));
}
