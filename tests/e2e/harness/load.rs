//! Load: `headworks load` as child processes, all started together.

use std::time::{Duration, Instant};

use super::process::Process;
use super::tally::Tally;

/// How long a load may take beyond its duration: start, last answers, and a machine with too little of everything.
const SLACK: Duration = Duration::from_secs(15);

/// What one load process is to do.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) target: String,
    pub(crate) key: String,
    pub(crate) attributes: Vec<String>,
    pub(crate) rps: f64,
    /// As fast as answers come, on so many connections, in place of a rate.
    pub(crate) connections: Option<usize>,
}

impl Load {
    pub(crate) fn new(target: &str, rps: f64) -> Self {
        let attributes = vec!["service=checkout".to_owned()];
        Self { target: target.to_owned(), key: "K".to_owned(), attributes, rps, connections: None }
    }

    /// As fast as answers come.
    pub(crate) fn flat_out(target: &str, connections: usize) -> Self {
        Self { connections: Some(connections), ..Self::new(target, 0.0) }
    }

    pub(crate) fn with(mut self, attribute: &str) -> Self {
        self.attributes.push(attribute.to_owned());
        self
    }

    fn start(&self, duration: Duration) -> Process {
        let mut args =
            ["load", "--json", "--target", &self.target, "--key", &self.key].map(str::to_owned).to_vec();
        match self.connections {
            Some(connections) => args.extend(["--closed".to_owned(), connections.to_string()]),
            None => args.extend(["--rps".to_owned(), self.rps.to_string()]),
        }
        args.extend(["--duration".to_owned(), format!("{}s", duration.as_secs())]);
        args.extend(self.attributes.iter().flat_map(|attribute| ["--attr".to_owned(), attribute.clone()]));
        Process::start(&format!("load of {}/s on {}", self.rps, self.target), args)
    }
}

/// Loads under way.
pub(crate) struct Loads {
    processes: Vec<Process>,
    started: Instant,
    duration: Duration,
}

impl Loads {
    pub(crate) fn start(loads: &[Load], duration: Duration) -> Self {
        let started = Instant::now();
        Self { processes: loads.iter().map(|load| load.start(duration)).collect(), started, duration }
    }

    /// The moment when this second of the load begins.
    pub(crate) fn second(&self, number: u64) -> Instant {
        self.started + Duration::from_secs(number)
    }

    /// The first second that begins at or after this moment.
    pub(crate) fn second_from(&self, moment: Instant) -> usize {
        let seconds = moment.saturating_duration_since(self.started).as_secs_f64().ceil();
        format!("{seconds:.0}").parse().unwrap()
    }

    /// Sends no more; answers that are due are still waited for.
    pub(crate) fn interrupt(&mut self) {
        self.duration = self.started.elapsed();
        self.processes.iter().for_each(|process| process.signal("INT"));
    }

    /// Waits for the end; the tally of each load, in the order they were given.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<Tally> {
        let limit = self.second(self.duration.as_secs()).saturating_duration_since(Instant::now()) + SLACK;
        self.processes.iter_mut().map(|process| tally_of(process, limit)).collect()
    }
}

#[track_caller]
fn tally_of(process: &mut Process, limit: Duration) -> Tally {
    process.wait(limit);
    Tally::parse(&process.stdout.whole()).unwrap_or_else(|error| panic!("{error}"))
}
