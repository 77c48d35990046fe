//! What a process writes: lines kept as they come, so that failures can show them.

use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::wait::within;

/// Lines shown of each process when a test fails.
const TAIL: usize = 25;

/// The lines of one stream.
#[derive(Clone, Default)]
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    ended: Arc<AtomicBool>,
}

impl Log {
    /// Follows the stream to its end on a thread of its own, so that its writer never waits.
    pub(crate) fn follow(stream: impl Read + Send + 'static) -> Self {
        let log = Log::default();
        let follower = log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                follower.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
            follower.ended.store(true, Ordering::Release);
        });
        log
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All that a process wrote which has ended: its last lines may still be on their way.
    pub(crate) fn whole(&self) -> String {
        within(Duration::from_secs(2), || self.ended.load(Ordering::Acquire).then_some(()));
        self.lines().join("\n")
    }

    pub(crate) fn tail(&self) -> String {
        let lines = self.lines();
        lines[lines.len().saturating_sub(TAIL)..].iter().map(|line| format!("    {line}\n")).collect()
    }

    /// Where a line says that `what` listens.
    pub(crate) fn address_of(&self, what: &str) -> Option<String> {
        let lines = self.lines();
        let mut listening = lines.iter().filter(|line| line.contains("listening"));
        listening
            .find(|line| field(line, "what").as_deref() == Some(what))
            .and_then(|line| field(line, "address"))
    }
}

/// A field of a log line, `name=value`, whether its value is quoted or not; or of one that is JSON.
fn field(line: &str, name: &str) -> Option<String> {
    if let Ok(event) = serde_json::from_str::<serde_json::Value>(line) {
        return event[name].as_str().map(str::to_owned);
    }
    let mut words = line.split_whitespace();
    let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}
