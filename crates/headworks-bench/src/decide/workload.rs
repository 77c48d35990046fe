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
const REQUESTS: usize = 200_000;

/// Many keys are more than the processor's caches hold.
const MANY: usize = 100_000;

/// What competitors are asked in a turn.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) threads: usize,
    pub(super) keys: Vec<Key>,
    pub(super) quota: Quota,
}

/// Who asks: three values, such as a service, a tenant and a route; those who tell callers apart by one text take the tenant.
#[derive(Clone, Debug)]
pub(super) struct Key {
    values: [String; 3],
}

impl Key {
    fn new(number: usize) -> Self {
        Self { values: ["checkout".to_owned(), format!("tenant-{number:07}"), "/v1/Pay".to_owned()] }
    }

    /// All three.
    pub(super) fn values(&self) -> [&str; 3] {
        self.values.each_ref().map(String::as_str)
    }

    /// The tenant.
    pub(super) fn tenant(&self) -> &String {
        &self.values[1]
    }
}

/// The requests of one thread in one turn.
#[derive(Debug)]
pub(super) struct Requests<'a> {
    keys: &'a [Key],
    order: Vec<u32>,
}

impl Requests<'_> {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Who asks, one after the other.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.order.iter().map(|at| &self.keys[*at as usize])
    }
}

impl Workload {
    pub(super) fn all() -> Vec<Self> {
        let of = |(threads, keys, quota): (_, usize, _)| Self {
            threads,
            keys: (0..keys).map(Key::new).collect(),
            quota,
        };
        let all = [
            (1, 1, Quota::Ample),
            (2, 1, Quota::Ample),
            (1, MANY, Quota::Ample),
            (1, 1, Quota::Spent),
            (1, MANY, Quota::Spent),
        ];
        all.into_iter().map(of).collect()
    }

    /// Each key once.
    pub(super) fn every_key(&self) -> Requests<'_> {
        Requests { keys: &self.keys, order: (0..).take(self.keys.len()).collect() }
    }

    /// What a thread asks in its turn: keys by chance.
    pub(super) fn requests(&self, thread: usize) -> Requests<'_> {
        let mut chance = fastrand::Rng::with_seed(thread as u64);
        let end = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        Requests { keys: &self.keys, order: (0..REQUESTS).map(|_| chance.u32(..end)).collect() }
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
