//! The load generator as the bench sees it: a process that tells what it said and heard.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::children::Tally;
use super::node;
use super::tell;
use crate::failure::Failure;

/// No fleet takes this long to attach, unless the machine has too little of everything.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long it may take to settle and end: its own patience, and a little.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// Time between lines of progress.
const PROGRESS: Duration = Duration::from_secs(3);

/// What its children are.
pub(super) struct Crowd<'a> {
    pub(super) parent: &'a str,
    pub(super) tier: &'a str,
    pub(super) children: u32,
    /// Buckets of each that change in every interval, and others that rest.
    pub(super) buckets: u32,
    pub(super) resting: u32,
}

/// A running generator; killed when dropped.
pub(super) struct Generator {
    child: Child,
    input: Option<ChildStdin>,
    told: watch::Receiver<Tally>,
    children: u32,
}

impl Generator {
    pub(super) fn start(crowd: &Crowd<'_>) -> Result<Self, Failure> {
        let failed = |error| Failure::Failed(format!("cannot start the load generator: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        node::without_variables(&mut command);
        command.args(["bench", "children", "--log", "off"]);
        command.args(["--parent", crowd.parent, "--tier", crowd.tier]);
        let (children, buckets, resting) = (crowd.children, crowd.buckets, crowd.resting);
        let numbers = [("--children", children), ("--buckets", buckets), ("--resting", resting)];
        numbers.into_iter().for_each(|(flag, number)| {
            command.args([flag, &number.to_string()]);
        });
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (tell, told) = watch::channel(Tally::default());
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if let Ok(tally) = serde_json::from_str(&line) {
                        tell.send_replace(tally);
                    }
                }
            });
        }
        Ok(Self { input: child.stdin.take(), child, told, children })
    }

    /// Waits until the parent has numbered all buckets of all children.
    pub(super) async fn stands(&mut self, title: &str) -> Result<(), Failure> {
        let (began, all) = (Instant::now(), u64::from(self.children));
        loop {
            let ready = self.told.wait_for(|tally| tally.ready >= all);
            match timeout(PROGRESS, ready).await.map(|ready| ready.map(|_| ())) {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_)) => return Err(self.failure("ended by itself")),
                Err(_) if began.elapsed() > PATIENCE => {
                    return Err(self.failure("did not attach all its children"));
                }
                Err(_) => {
                    let ready = self.tally().ready;
                    tell(title, &format!("{ready} of {all} children are attached and have their numbers"));
                }
            }
        }
    }

    /// What was said and heard so far.
    pub(super) fn tally(&self) -> Tally {
        *self.told.borrow()
    }

    /// Lets the children fall silent and hear the answers to all that they said; the whole of it.
    pub(super) async fn finish(mut self) -> Result<Tally, Failure> {
        drop(self.input.take());
        let ended = async { while self.told.changed().await.is_ok() {} };
        match timeout(LAST_WORDS, ended).await {
            Ok(()) => Ok(self.tally()),
            Err(_) => Err(self.failure("did not end")),
        }
    }

    fn failure(&self, what: &str) -> Failure {
        let Tally { ready, detached, .. } = self.tally();
        let children = self.children;
        Failure::Failed(format!(
            "the load generator {what}: {ready} of {children} children were attached, {detached} streams broke; \
             this machine cannot bear so many, give fewer"
        ))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
