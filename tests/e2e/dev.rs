//! `headworks dev`: the first thing that anybody sees of Headworks.

use std::fs;
use std::time::Duration;

use crate::harness::{Process, assert_near};

/// Time until the first surge is seen; it begins some 8 s after the start.
const SURGE_WITHIN: Duration = Duration::from_secs(30);
/// Seconds after its beginning in which the ratio may still settle: two intervals, and the one it began in.
const SETTLING: u32 = 3;
const FREE: [&str; 4] = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// One line of the board.
#[derive(Debug)]
struct Line {
    second: u32,
    name: String,
    limit: f64,
    offered: f64,
    admitted: f64,
    dropped: f64,
    ratio: f64,
}

impl Line {
    /// `  12s checkout  limit 1000/s  offered 3012/s  admitted 1003/s  dropped 2009/s  ratio 0.667 …`
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let second = words.next()?.strip_suffix('s')?.parse().ok()?;
        let name = words.next()?.to_owned();
        let words: Vec<&str> = words.collect();
        let after = |word: &str| {
            let at = words.iter().position(|other| *other == word)?;
            words.get(at + 1)?.trim_end_matches("/s").parse().ok()
        };
        let dropped = after("dropped").or_else(|| after("drop"))?;
        let (limit, offered, admitted, ratio) =
            (after("limit")?, after("offered")?, after("admitted")?, after("ratio")?);
        Some(Self { second, name, limit, offered, admitted, dropped, ratio })
    }

    fn is_surge(&self) -> bool {
        self.offered > 1.5 * self.limit
    }

    fn expected_ratio(&self) -> f64 {
        (self.offered - self.limit) / self.offered
    }
}

/// The second that ends with the first line of a surge.
fn surge_of(dev: &Process, name: &str) -> u32 {
    let surge = dev
        .stdout
        .find(SURGE_WITHIN, |text| Line::parse(text).filter(|line| line.name == name && line.is_surge()));
    let lines = dev.stdout.so_far();
    surge.unwrap_or_else(|| panic!("no surge of {name} in:\n{}", lines.join("\n"))).second
}

fn line_at(dev: &Process, name: &str, second: u32) -> Line {
    let found = dev.stdout.find(Duration::from_secs(10), |text| {
        Line::parse(text).filter(|line| line.name == name && line.second == second)
    });
    found.unwrap_or_else(|| panic!("no line of {name} at {second} s in:\n{}", dev.stdout.so_far().join("\n")))
}

fn assert_interrupt_ends(dev: &mut Process) {
    dev.signal("INT");
    assert_eq!(dev.exit_code(Duration::from_secs(2)), 0, "{}", dev.complaint());
}

#[test]
fn dev_shows_a_surge_held_to_its_limit_and_ends_at_once() {
    let mut dev = Process::start("dev", &[&["dev"][..], &FREE].concat());
    let surge = surge_of(&dev, "checkout");
    for second in surge + SETTLING - 1..surge + SETTLING + 3 {
        let line = line_at(&dev, "checkout", second);
        assert!(line.is_surge(), "the surge lasts: {line:?}");
        assert_near(&format!("ratio of {line:?}"), line.ratio, line.expected_ratio(), 0.02);
        assert_near(&format!("admitted of {line:?}"), line.admitted, line.limit, 0.06 * line.limit);
        assert_near(&format!("dropped of {line:?}"), line.dropped, line.offered - line.admitted, 2.0);
    }
    assert_interrupt_ends(&mut dev);
    assert_every_limit_has_a_line_each_second(&dev, surge);
}

/// The names of the built-in example are those of the first second; each of them has a line in every later one.
fn assert_every_limit_has_a_line_each_second(dev: &Process, last: u32) {
    let lines: Vec<Line> = dev.stdout.to_end().iter().filter_map(|text| Line::parse(text)).collect();
    let names = |second: u32| lines.iter().filter(move |line| line.second == second).map(|line| &line.name);
    assert!(names(last).count() >= 2, "the example has several limits: {lines:?}");
    for second in 3..last {
        assert!(names(second).eq(names(last)), "at {second} s: {lines:?}");
    }
}

#[test]
fn dev_takes_a_limits_file_and_ends_before_its_first_surge_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    fs::write(&file, "limits:\n  - {name: mine, match: {service: mine}, rate: 100/second}\n").unwrap();
    let args = [&["dev", "--limits", file.to_str().unwrap()][..], &FREE].concat();
    let mut dev = Process::start("dev", &args);
    let line = line_at(&dev, "mine", 2);
    assert_near("the limit of the file", line.limit, 100.0, 0.1);
    assert_interrupt_ends(&mut dev);
}
