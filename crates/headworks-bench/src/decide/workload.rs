//! What competitors are asked: which keys, from how many threads, and what becomes of the requests.

use std::fmt;

/// How much a key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quota {
    /// More than any turn asks for.
    Ample,
    /// Nothing, after the first request.
    Spent,
}

/// Requests in one turn of a thread: a few milliseconds, so that competitors alternate faster than the machine's load.
const REQUESTS: usize = 100_000;

/// Many keys are more than the processor's caches hold.
const MANY: usize = 100_000;

/// What competitors are asked in a turn.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) threads: usize,
    pub(super) keys: Vec<String>,
    pub(super) quota: Quota,
}

impl Workload {
    pub(super) fn all() -> Vec<Self> {
        let of = |(threads, keys, quota)| Self { threads, keys: names(keys), quota };
        let all = [
            (1, 1, Quota::Ample),
            (1, MANY, Quota::Ample),
            (1, 1, Quota::Spent),
            (1, MANY, Quota::Spent),
            (2, 1, Quota::Ample),
            (2, 2, Quota::Ample),
        ];
        all.into_iter().map(of).collect()
    }

    /// Each key once.
    pub(super) fn every_key(&self) -> Vec<&String> {
        self.keys.iter().collect()
    }

    /// What a thread asks in its turn: keys of its own where there are as few as threads, else keys by chance.
    pub(super) fn requests(&self, thread: usize) -> Vec<&String> {
        if self.keys.len() <= self.threads {
            return vec![&self.keys[thread % self.keys.len()]; REQUESTS];
        }
        let mut chance = Chance(thread as u64);
        (0..REQUESTS).map(|_| &self.keys[chance.below(self.keys.len())]).collect()
    }

    /// How many of so many requests should pass.
    pub(super) fn admitted(&self, requests: usize) -> usize {
        if self.quota == Quota::Ample { requests } else { 0 }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        let (keys, threads) = (plural(self.keys.len(), "key"), plural(self.threads, "thread"));
        let fate = if self.quota == Quota::Ample { "admitted" } else { "denied" };
        write!(f, "{threads}, {keys}, {fate}")
    }
}

fn names(keys: usize) -> Vec<String> {
    (0..keys).map(|key| format!("user-{key}")).collect()
}

/// Numbers by chance, the same in each run: Knuth's linear congruential generator.
struct Chance(u64);

impl Chance {
    #[allow(clippy::cast_possible_truncation, reason = "the bits that are kept are as good as any")]
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}
