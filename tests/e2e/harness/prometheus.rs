//! A real Prometheus with the configuration and the rules that ship, in a hurry.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::http::get;
use super::node::Node;
use super::redis::free_port;
use super::wait::eventually;

const MISSING: &str = "is missing: `tests/run` installs it, or `apt-get install prometheus`";
/// By how much every `for` of an alert is shortened.
const HURRY: u64 = 20;

/// Where what ships for deployments is.
pub(crate) fn deployed(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// A Prometheus of its own for a test; gone when dropped.
pub(crate) struct Prometheus {
    port: u16,
    child: Child,
    /// Configuration, rules and data.
    _folder: TempDir,
}

impl Prometheus {
    /// Scrapes these nodes each second, and waits until it has scraped all of them.
    #[track_caller]
    pub(crate) fn start<'a>(nodes: impl Iterator<Item = &'a Node>) -> Self {
        let targets: Vec<&str> = nodes.map(|node| node.address("admin")).collect();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        let shipped = |name: &str| fs::read_to_string(deployed("prometheus").join(name)).unwrap();
        write("prometheus.yml", configuration(&shipped("prometheus.yml"), &targets));
        write("rules.yaml", in_a_hurry(&shipped("rules.yaml")));
        write("alerts.yaml", in_a_hurry(&shipped("alerts.yaml")));
        let port = free_port();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus {MISSING}: {error}"));
        let prometheus = Self { port, child, _folder: folder };
        eventually("prometheus is ready", Duration::from_secs(20), || {
            let ready = get(&format!("127.0.0.1:{port}"), "/-/ready");
            ready.map_or_else(|e| Some(e.to_string()), |answer| (answer.status != 200).then_some(answer.body))
        });
        prometheus.await_value("count(up == 1)", |up| up.round() == targets.len() as f64);
        prometheus
    }

    /// What a query answers now: each series with its labels.
    pub(crate) fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let asked =
            Command::new("promtool").args(["query", "instant", "--format=json", &url, query]).output();
        let asked = asked.unwrap_or_else(|error| panic!("promtool {MISSING}: {error}"));
        let said = [asked.stdout.as_slice(), &asked.stderr].concat();
        let answer = serde_json::from_slice(&asked.stdout).ok().filter(|_| asked.status.success());
        answer.ok_or_else(|| format!("{query}: {}", String::from_utf8_lossy(&said)))
    }

    /// Each value of a query's answer, with one of its labels.
    #[track_caller]
    pub(crate) fn values(&self, query: &str, label: &str) -> Vec<(String, f64)> {
        let series = self.query(query).unwrap_or_else(|error| panic!("{error}"));
        let label_of = |series: &Value| series["metric"][label].as_str().unwrap_or_default().to_owned();
        series.iter().map(|series| (label_of(series), value_of(series))).collect()
    }

    /// Waits until a query has one answer that is right.
    #[track_caller]
    pub(crate) fn await_value(&self, query: &str, is_right: impl Fn(f64) -> bool) {
        eventually(query, Duration::from_secs(40), || {
            let values = self.values(query, "");
            (!values.first().is_some_and(|(_, value)| is_right(*value))).then(|| format!("{values:?}"))
        });
    }
}

fn value_of(series: &Value) -> f64 {
    series["value"][1].as_str().unwrap().parse().unwrap()
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The configuration with other targets, and with a second for every interval.
fn configuration(shipped: &str, targets: &[&str]) -> String {
    let (head, _) = shipped.split_once("- targets:").unwrap();
    format!("{}- targets: [{}]\n", head.replace("_interval: 5s", "_interval: 1s"), quoted(targets))
}

fn quoted(targets: &[&str]) -> String {
    targets.iter().map(|target| format!("'{target}'")).collect::<Vec<_>>().join(", ")
}

/// Rules that are looked at each second, and alerts whose every `for` takes a twentieth of its time.
fn in_a_hurry(alerts: &str) -> String {
    let shorter = |line: &str| match line.split_once("for: ") {
        Some((indent, time)) if indent.trim().is_empty() => {
            format!("{indent}for: {}ms", seconds(time) * 1000 / HURRY)
        }
        _ => line.replace("interval: 5s", "interval: 1s"),
    };
    alerts.lines().map(shorter).collect::<Vec<_>>().join("\n")
}

fn seconds(time: &str) -> u64 {
    let number = |text: &str| text.parse::<u64>().unwrap();
    match time.strip_suffix('m') {
        Some(minutes) => 60 * number(minutes),
        None => number(time.strip_suffix('s').unwrap()),
    }
}
