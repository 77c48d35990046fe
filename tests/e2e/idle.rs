//! Values that come once, by the million: memory and series stay bounded, and places are free again.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::harness::{FleetPlan, eventually};

/// As many as a limit tracks that does not say.
const MAX_BUCKETS: u64 = 10_000;
const LIMITS: &str = "limits:\n  - {name: each, per: [key], rate: 1000/second}\n";

/// A million with `HEADWORKS_IDLE_KEYS=1000000`.
fn keys() -> usize {
    std::env::var("HEADWORKS_IDLE_KEYS").map_or(200_000, |number| number.parse().unwrap())
}

/// Asks once for each of these values, many at a time on one connection.
fn ask_for_each(address: &str, values: std::ops::Range<usize>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let values: Vec<usize> = values.collect();
    for batch in values.chunks(50) {
        let asked: String = batch
            .iter()
            .map(|value| format!("GET /allow?key=w{value} HTTP/1.1\r\nhost: a\r\n\r\n"))
            .collect();
        stream.write_all(asked.as_bytes()).unwrap();
        let (mut answered, mut text) = (0, Vec::new());
        while answered < batch.len() {
            let mut part = [0; 65_536];
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "the connection was closed");
            text.extend_from_slice(&part[..read]);
            answered = text.windows(9).filter(|start| start == b"HTTP/1.1 ").count();
        }
    }
}

#[test]
fn values_that_come_once_cost_no_more_than_their_places_and_leave_them_free() {
    let fleet = FleetPlan::new(LIMITS).zones(&[("a", 1)]).start();
    let agent = &fleet.agents[0];
    let address = agent.address("http");
    ask_for_each(address, 0..1);
    let (before, series) = (agent.process.resident(), agent.scrape().0.lines().count());
    let (keys, parts) = (keys(), 4);
    thread::scope(|scope| {
        for part in 0..parts {
            scope.spawn(move || ask_for_each(address, part * keys / parts..(part + 1) * keys / parts));
        }
    });
    let grown = agent.process.resident().saturating_sub(before);
    eprintln!("{keys} keys: the agent grew by {} KiB", grown / 1024);
    assert!(grown <= MAX_BUCKETS * 300 + 16 * 1024 * 1024, "{grown} bytes more");
    let scrape = agent.scrape();
    assert!(scrape.0.lines().count() <= series + 2, "{}", scrape.0);
    assert_eq!(scrape.of_limit("headworks_offered_total", "each"), keys as f64 + 1.0);
    assert!(scrape.of_limit("headworks_untracked_total", "each") > 0.0);
    let buckets = || agent.scrape().of_limit("headworks_buckets", "each");
    eprintln!("{} buckets", buckets());
    eventually("places are free again", Duration::from_secs(100), || {
        let buckets = buckets();
        (buckets > 2.0).then(|| format!("{buckets} buckets"))
    });
    let before = buckets();
    ask_for_each(address, 1..11);
    assert_eq!(buckets(), before + 10.0);
    assert_eq!(agent.scrape().of_limit("headworks_offered_total", "each"), keys as f64 + 11.0);
}
