//! What reports cost a parent: `bench fanin` and `bench tick`, which differ in what is measured and who reports to it.

mod report;

use std::io::{self, Write as _};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::children::{LIMIT, Tally};
use super::folder::Folder;
use super::generator::{Crowd, Generator};
use super::node::Node;
use super::parents::{FREE, Parent, Parents};
use super::tell;
use super::usage::{self, Usage};
use crate::failure::Failure;
use crate::shutdown;
use report::Report;

/// The one zone of `fanin`.
const ZONE: &str = "a";
/// The least time between two reports, as controllers have it by default.
const SPACING: &str = "50ms";
/// How long all children report before anything is measured.
const WARM_UP: Duration = Duration::from_secs(5);
/// Units a second that each child offers each bucket, as the generator has it; the limit is half of it, so that every
/// bucket has a headroom that moves.
const UNITS: u64 = 10;

/// What is measured beside Headworks, in turns with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Beside {
    /// A bare tonic server that is told the same messages, and answers each with a plan of as many headrooms
    Echo,
    /// Nothing
    Nothing,
}

/// What is asked.
pub(super) struct Bench {
    pub(super) subject: Subject,
    pub(super) children: u32,
    pub(super) buckets: u32,
    pub(super) resting: u32,
    pub(super) duration: Duration,
    pub(super) runs: u32,
    pub(super) threads: u32,
    pub(super) beside: Beside,
    pub(super) json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// An aggregator, with a controller above it, by agents.
    Aggregator,
    /// A controller, by aggregators.
    Controller,
    /// The echo, by the same children.
    Echo,
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Subject::Aggregator => "aggregator",
            Subject::Controller => "controller",
            Subject::Echo => "echo",
        }
    }

    /// What the thread is called that owns its state.
    fn owner(self) -> Option<&'static str> {
        match self {
            Subject::Aggregator => Some("zone"),
            Subject::Controller => Some("fleet"),
            Subject::Echo => None,
        }
    }
}

/// What one run cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cost {
    /// Processor time a second, in user and kernel mode.
    cores: f64,
    /// The part of it that the thread took which owns the state: sums, ticks and plans.
    owner_cores: Option<f64>,
    report_us: f64,
    bucket_ns: f64,
    resident_bytes: u64,
    resident_bytes_per_child: f64,
    reports_per_second: f64,
    plans_per_second: f64,
    headrooms_per_second: f64,
    /// Buckets of children that were told no headroom.
    without_headroom: u64,
    /// Of the whole run.
    reports_sent: u64,
    reports_taken: u64,
}

/// Runs it: what is measured, and what stands beside it, take turns, so that what else the machine does meets both alike.
pub(super) async fn run(bench: &Bench) -> Result<(), Failure> {
    usage::check_open_files(bench.children)?;
    let stop = shutdown::on_signal()?;
    let mut report = Report::new(bench);
    // Dropping what runs kills its processes and removes its folder.
    if let Some(done) = stop.run_until_cancelled(run_all(bench, &mut report)).await {
        done?;
    }
    if report.is_empty() {
        return Err(Failure::Failed("interrupted before the first run was over".to_owned()));
    }
    // A reader that has gone away wants no report, and is no failure.
    let _ = writeln!(io::stdout(), "{}", if bench.json { report.to_json() } else { report.to_string() });
    Ok(())
}

async fn run_all(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    for run in 1..=bench.runs {
        for subject in bench.subjects() {
            let title = format!("run {run} of {}, {}", bench.runs, subject.name());
            let cost = bench.one(subject, &title).await?;
            tell(&title, &report::line(&cost));
            report.add(subject, cost);
        }
    }
    Ok(())
}

/// What runs for one measurement.
enum Running {
    Parents(Box<Parents>),
    Echo { node: Node, url: String },
}

impl Bench {
    fn subjects(&self) -> Vec<Subject> {
        match self.beside {
            Beside::Echo => vec![self.subject, Subject::Echo],
            Beside::Nothing => vec![self.subject],
        }
    }

    async fn one(&self, subject: Subject, title: &str) -> Result<Cost, Failure> {
        let running = self.start(subject).await?;
        let (pid, url) = running.target(subject);
        tell(title, &format!("attaching {} children", self.children));
        let mut generator = Generator::start(&Crowd {
            parent: url,
            tier: if self.subject == Subject::Controller { "aggregator" } else { "agent" },
            children: self.children,
            buckets: self.buckets,
            resting: self.resting,
        })?;
        generator.stands(title).await?;
        tell(title, &format!("all report; measuring for {:?} after {WARM_UP:?}", self.duration));
        sleep(WARM_UP).await;
        let before = Reading::take(subject, pid, &generator)?;
        sleep(self.duration).await;
        let after = Reading::take(subject, pid, &generator)?;
        let total = generator.finish().await?;
        let taken = match running.parent(subject) {
            Some(parent) => parent.status().await?.reports,
            None => total.answered,
        };
        if total.detached > 0 {
            let broken = total.detached;
            return Err(Failure::Failed(format!(
                "{broken} streams broke: this machine cannot bear so much, give fewer children or buckets"
            )));
        }
        Ok(self.cost(&before, &after, total, taken))
    }

    async fn start(&self, subject: Subject) -> Result<Running, Failure> {
        let threads = Some(self.threads);
        if subject == Subject::Echo {
            let mut node = Node::launch("echo", &["bench", "echo", "--listen", FREE], threads)?;
            let url = format!("http://{}", node.address_of("tree").await?);
            return Ok(Running::Echo { node, url });
        }
        let zones: &[&str] = if subject == Subject::Aggregator { &[ZONE] } else { &[] };
        let parents = Parents::with_threads(Folder::new()?, &self.limits(), SPACING, zones, threads).await?;
        Ok(Running::Parents(Box::new(parents)))
    }

    fn limits(&self) -> String {
        let rate = (u64::from(self.children) * UNITS / 2).max(1);
        let most = self.buckets + self.resting;
        format!(
            "limits:\n  - name: {LIMIT}\n    per: [caller]\n    rate: {rate}/second\n    max_buckets: {most}\n"
        )
    }

    #[allow(clippy::cast_precision_loss, reason = "no count of a bench is above 2^53")]
    fn cost(&self, before: &Reading, after: &Reading, total: Tally, taken: u64) -> Cost {
        let time = (after.at - before.at).as_secs_f64();
        let used = after.usage.processor.saturating_sub(before.usage.processor).as_secs_f64();
        let said = after.tally.since(before.tally);
        let owner = before.owner.zip(after.owner);
        let buckets = u64::from(self.children) * u64::from(self.buckets + self.resting);
        Cost {
            cores: used / time,
            owner_cores: owner.map(|(before, after)| after.saturating_sub(before).as_secs_f64() / time),
            report_us: used * 1e6 / said.reports as f64,
            bucket_ns: used * 1e9 / said.entries as f64,
            resident_bytes: after.usage.resident,
            resident_bytes_per_child: after.usage.resident as f64 / f64::from(self.children),
            reports_per_second: said.reports as f64 / time,
            plans_per_second: said.plans as f64 / time,
            headrooms_per_second: said.headrooms as f64 / time,
            without_headroom: buckets.saturating_sub(total.steered),
            reports_sent: total.reports,
            reports_taken: taken,
        }
    }
}

impl Running {
    fn target(&self, subject: Subject) -> (u32, &str) {
        match self {
            Running::Echo { node, url } => (node.pid(), url),
            Running::Parents(parents) => {
                let parent = parents.of(subject == Subject::Aggregator);
                (parent.node.pid(), &parent.url)
            }
        }
    }

    fn parent(&self, subject: Subject) -> Option<&Parent> {
        match self {
            Running::Echo { .. } => None,
            Running::Parents(parents) => Some(parents.of(subject == Subject::Aggregator)),
        }
    }
}

/// What was used and said by a moment.
struct Reading {
    at: Instant,
    usage: Usage,
    owner: Option<Duration>,
    tally: Tally,
}

impl Reading {
    fn take(subject: Subject, pid: u32, generator: &Generator) -> Result<Self, Failure> {
        Ok(Self {
            at: Instant::now(),
            usage: Usage::of(pid)?,
            owner: subject.owner().map(|name| usage::of_thread(pid, name)).transpose()?,
            tally: generator.tally(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn bench() -> Bench {
        Bench {
            subject: Subject::Aggregator,
            children: 1000,
            buckets: 10,
            resting: 0,
            duration: Duration::from_secs(10),
            runs: 3,
            threads: 2,
            beside: Beside::Echo,
            json: false,
        }
    }

    #[test]
    fn its_limits_are_sound() {
        let limits = headworks_core::limits::parse(&bench().limits()).unwrap();
        assert_eq!(limits.limits()[0].max_buckets, 10);
    }
}
