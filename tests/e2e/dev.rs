//! `headworks dev`: the whole fleet in one process, told line by line.

use std::time::{Duration, Instant};

use crate::harness::{Figure, LimitsFile, Process, eventually};

/// One line of the demo: a limit's last second.
#[derive(Clone, Debug)]
struct Line {
    limit: String,
    rate: f64,
    offered: f64,
    ratio: f64,
}

impl Line {
    /// Reads `  12s  checkout  limit 1000/second  offered 3012/s  admitted 1003/s  dropped 2009/s  ratio 0.667`.
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.first()?.strip_suffix('s')?.parse::<u64>().ok()?;
        let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
        let figure = |name: &str| after(name)?.split('/').next()?.parse::<f64>().ok();
        let limit = (*words.get(1)?).to_owned();
        Some(Self { limit, rate: figure("limit")?, offered: figure("offered")?, ratio: figure("ratio")? })
    }

    fn is_surge(&self) -> bool {
        self.offered > 1.5 * self.rate
    }
}

/// The limits of the built-in example that are one bucket each, so that their lines' figures are those of a bucket.
const WHOLE: [&str; 2] = ["checkout", "search-trial"];

/// A limit's lines from two intervals after its surge began until it ended.
fn settled(dev: &Process, limit: &str) -> Vec<Line> {
    let lines = dev.stdout.lines();
    let lines = lines.iter().filter_map(|text| Line::parse(text)).filter(|line| line.limit == limit);
    let surge = lines.skip_while(|line| !line.is_surge()).take_while(Line::is_surge);
    // The first one is of the second in which the surge began; in the next, two intervals are not yet over.
    surge.skip(2).collect()
}

#[test]
fn drops_what_is_over_the_limit_two_intervals_into_the_surge_and_ends_at_ctrl_c() {
    let mut dev = Process::start("dev", ["dev", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    eventually("lines of a settled surge", Duration::from_secs(40), || {
        WHOLE.iter().any(|limit| settled(&dev, limit).len() < 3).then(|| dev.stdout.tail())
    });
    for line in WHOLE.iter().flat_map(|limit| settled(&dev, limit)) {
        let figure = format!("ratio in {line:?}\n{}", dev.stdout.tail());
        Figure::new(&figure, line.ratio).is_near((line.offered - line.rate) / line.offered, 0.02);
    }
    let asked = Instant::now();
    dev.signal("INT");
    let status = dev.wait(Duration::from_secs(2));
    assert_eq!(status.code(), Some(0), "after {:?}\n{}", asked.elapsed(), dev.stderr.tail());
}

#[test]
fn shows_the_limits_of_a_file_instead_of_the_example() {
    let file = LimitsFile::new("limits:\n  - {name: mine, match: {service: mine}, rate: 100/second}\n");
    let path = file.path().display().to_string();
    let args = ["dev", "--limits", &path, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut dev = Process::start("dev", args);
    let lines = || dev.stdout.lines().iter().filter_map(|text| Line::parse(text)).collect::<Vec<_>>();
    eventually("two lines", Duration::from_secs(10), || (lines().len() < 2).then(|| dev.stdout.tail()));
    for line in lines() {
        assert_eq!(line.limit, "mine", "{line:?}");
        Figure::new(&format!("the limit in {line:?}"), line.rate).is_near(100.0, 0.0);
    }
    dev.signal("INT");
    let status = dev.wait(Duration::from_secs(2));
    assert_eq!(status.code(), Some(0), "{}", dev.stderr.tail());
}
