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
    pub(super) order: Order,
}

/// In which order keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As they were first seen: who keeps things in that order has what comes next at hand.
    AsSeen,
    /// In another: hardly anything is at hand.
    Other,
}

/// Who asks: three values, such as a service, a tenant and a route; those whose keys are one text take that of all three.
#[derive(Clone, Debug)]
pub(super) struct Key {
    number: usize,
    values: [String; 3],
    joined: String,
}

impl Key {
    fn new(number: usize) -> Self {
        let values = ["checkout".to_owned(), format!("tenant-{number:07}"), "/v1/Pay".to_owned()];
        let joined = values.concat();
        Self { number, values, joined }
    }

    /// All three, as they are kept.
    pub(super) fn owned(&self) -> &[String; 3] {
        &self.values
    }

    /// All three.
    pub(super) fn values(&self) -> [&str; 3] {
        self.values.each_ref().map(String::as_str)
    }

    /// All three in one.
    pub(super) fn joined(&self) -> &String {
        &self.joined
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
        let of = |(threads, keys, quota, order)| Self { threads, keys: shuffled(keys), quota, order };
        let all = [
            (1, 1, Quota::Ample, Order::AsSeen),
            (2, 1, Quota::Ample, Order::AsSeen),
            (1, MANY, Quota::Ample, Order::AsSeen),
            (2, MANY, Quota::Ample, Order::AsSeen),
            (1, MANY, Quota::Ample, Order::Other),
            (1, 1, Quota::Spent, Order::AsSeen),
            (1, MANY, Quota::Spent, Order::AsSeen),
        ];
        all.into_iter().map(of).collect()
    }

    /// Each key once, as they are first seen.
    pub(super) fn every_key(&self) -> Requests<'_> {
        let mut order: Vec<u32> = (0..).take(self.keys.len()).collect();
        if self.order == Order::Other {
            order.sort_by_key(|place| self.keys[*place as usize].number);
        }
        Requests { keys: &self.keys, order }
    }

    /// What a thread asks in its turn: keys as they lie, since the text of a request that has just come is at hand. Threads begin at
    /// different ones.
    pub(super) fn requests(&self, thread: usize) -> Requests<'_> {
        let first = self.keys.len() * thread / self.threads;
        let places = (0..).take(self.keys.len()).cycle().skip(first);
        Requests { keys: &self.keys, order: places.take(REQUESTS).collect() }
    }
}

/// So many keys, whose numbers are in no order.
fn shuffled(keys: usize) -> Vec<Key> {
    let mut numbers: Vec<usize> = (0..keys).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut numbers);
    numbers.into_iter().map(Key::new).collect()
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        let (keys, threads) = (plural(self.keys.len(), "key"), plural(self.threads, "thread"));
        let fate = if self.quota == Quota::Ample { "admitted" } else { "denied" };
        let order = if self.order == Order::Other { " in another order than first" } else { "" };
        write!(f, "{threads}, {keys}{order}, {fate}")
    }
}
