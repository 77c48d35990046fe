//! When to write the state file, and what to say when it cannot be written.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use headworks_core::agent::{Agent as State, Kept};
use headworks_core::limits::Digest;
use headworks_core::units::Moment;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::file;

/// How often headrooms that changed are written, and how soon a write that failed is tried again.
const OFTEN: Duration = Duration::from_secs(5);
/// How often headrooms are written that did not change: a file has to be younger than the hold to be worth something.
const SELDOM: Duration = Duration::from_secs(15);
/// How long the last write of a life may take.
const LAST: Duration = Duration::from_secs(1);

/// Keeps an agent's state on disk: one write at a time, off the agent's own task, the newest state each time.
#[derive(Debug)]
pub(crate) struct Keeper {
    path: PathBuf,
    writing: Option<JoinHandle<io::Result<()>>>,
    looked: Option<Moment>,
    /// What was written last, or is being written.
    written: Option<Written>,
    failing: bool,
    errors: u64,
}

#[derive(Clone, Copy, Debug)]
struct Written {
    limits: Digest,
    mark: u64,
    at: Moment,
}

impl Keeper {
    /// The keeper of a node's file in this directory.
    pub(crate) fn new(directory: &Path, node: &str) -> Self {
        Self {
            path: file::path(directory, node),
            writing: None,
            looked: None,
            written: None,
            failing: false,
            errors: 0,
        }
    }

    /// What an earlier life kept. A file that is of no use is moved aside.
    pub(crate) fn read(&self) -> Option<Kept> {
        let path = self.path.display();
        match file::read(&self.path, SystemTime::now()) {
            Ok(None) => None,
            Ok(Some(kept)) => {
                let limits = kept.limits.limits().len();
                tracing::info!(%path, age = ?kept.age, limits, buckets = kept.buckets.len(), "state taken over");
                Some(kept)
            }
            Err(unusable) => {
                let aside = match file::set_aside(&self.path) {
                    Ok(aside) => format!("moved to {}", aside.display()),
                    Err(error) => format!("will be overwritten ({error})"),
                };
                tracing::warn!(%path, cause = %unusable, aside, "state file ignored");
                None
            }
        }
    }

    /// Times that the file could not be written.
    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }

    /// Writes what is worth writing by now. Never waits.
    pub(crate) fn tend(&mut self, state: &State, now: Moment) {
        self.finish();
        if self.writing.is_some() || !self.is_time(state, now) {
            return;
        }
        self.looked = Some(now);
        if let Some(kept) = state.keep(now) {
            let written = Written { limits: kept.limits.digest(), mark: mark(&kept), at: now };
            if self.written.is_none_or(|before| before.is_outdone_by(&written)) {
                self.start(kept, written);
            }
        }
    }

    /// Writes the last state of this life, and waits for it a little.
    pub(crate) async fn close(mut self, state: &State, now: Moment) {
        let kept = state.keep(now);
        let path = self.path.clone();
        let last = async move {
            if let Some(writing) = self.writing.take() {
                let _ = writing.await;
            }
            if let Some(kept) = kept {
                let _ = spawn_blocking(move || write(&path, &kept)).await;
            }
        };
        let _ = timeout(LAST, last).await;
    }

    /// New limits are written at once, unless the disk has just refused.
    fn is_time(&self, state: &State, now: Moment) -> bool {
        let Some(looked) = self.looked else { return true };
        let new_limits = self.written.is_some_and(|written| written.limits != state.limits().digest());
        new_limits && !self.failing || now.since(looked) >= OFTEN
    }

    fn start(&mut self, kept: Kept, written: Written) {
        let path = self.path.clone();
        self.written = Some(written);
        self.writing = Some(spawn_blocking(move || write(&path, &kept)));
    }

    fn finish(&mut self) {
        let Some(done) = self.writing.as_mut().and_then(FutureExt::now_or_never) else { return };
        self.writing = None;
        let failure = match done {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        self.tell(failure);
    }

    /// Counts every failure, and logs where they begin and end.
    fn tell(&mut self, failure: Option<String>) {
        let path = self.path.display();
        let was_failing = std::mem::replace(&mut self.failing, failure.is_some());
        match failure {
            Some(cause) => {
                self.errors += 1;
                self.written = None;
                if !was_failing {
                    tracing::warn!(%path, cause, "state cannot be kept; requests go on, and it will be tried again");
                }
            }
            None if was_failing => tracing::info!(%path, "state is kept again"),
            None => {}
        }
    }
}

impl Written {
    fn is_outdone_by(&self, newer: &Written) -> bool {
        self.limits != newer.limits || self.mark != newer.mark || newer.at.since(self.at) >= SELDOM
    }
}

fn write(path: &Path, kept: &Kept) -> io::Result<()> {
    file::write(path, &file::encode(kept, SystemTime::now()))
}

/// Changes with the headrooms, whatever order they come in.
fn mark(kept: &Kept) -> u64 {
    let each = kept.buckets.iter().map(|bucket| {
        let mut hasher = DefaultHasher::new();
        (&bucket.key, bucket.headroom.value().to_bits()).hash(&mut hasher);
        hasher.finish()
    });
    each.fold(0, u64::wrapping_add)
}
