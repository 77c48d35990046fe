//! What a thread has of a limiter: the rules it read last, its way to the records, and the cells it counts in.

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering::Acquire};
use std::sync::{Arc, Weak};

use fastrand::Rng;

use super::Inner;
use super::cells::{Cell, Stripe};
use super::prepared::Resolved;
use super::rules::Rules;
use super::table::Table;

/// One thread's part of a limiter.
#[derive(Debug)]
pub(super) struct Local {
    limiter: Weak<Inner>,
    /// Kept until the thread decides again, or ends; so a reload leaves each thread its old rules until then.
    pub(super) rules: Arc<Rules>,
    pub(super) hands: Hands,
    /// What prepared requests meet, by their slots.
    pub(super) prepared: Vec<Option<Resolved>>,
}

/// What a decision writes with, and finds records by.
#[derive(Debug)]
pub(super) struct Hands {
    pub(super) stripe: Own,
    pub(super) table: Arc<Table>,
    pub(super) random: Rng,
    /// Threads that count for themselves.
    pub(super) threads: Arc<AtomicI64>,
}

/// The cells that no other thread writes to.
#[derive(Debug)]
pub(super) struct Own(Arc<Stripe>);

impl Own {
    /// The cell of a record by what it says of being hot: the cell's number plus one, or 0.
    #[inline]
    pub(super) fn of_hot(&self, hot: u32) -> Option<&Cell> {
        self.0.cell(hot.checked_sub(1)?)
    }
}

impl Local {
    fn new(limiter: &Arc<Inner>) -> Self {
        let (stripe, threads, table) = limiter.ledger.join();
        Self {
            limiter: Arc::downgrade(limiter),
            rules: limiter.rules.load_full(),
            hands: Hands { stripe: Own(stripe), table, random: Rng::new(), threads },
            prepared: Vec::new(),
        }
    }
}

/// The rules in force, as a thread has them once it has looked whether there are newer ones.
#[inline]
pub(super) fn current<'r>(rules: &'r mut Arc<Rules>, limiter: &Inner) -> &'r Arc<Rules> {
    if rules.generation != limiter.generation.load(Acquire) {
        *rules = limiter.rules.load_full();
    }
    rules
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(limiter) = self.limiter.upgrade() {
            limiter.ledger.part(&self.hands.stripe.0);
        }
    }
}

thread_local! {
    /// One for each limiter that the thread decides by: mostly one.
    static LOCALS: RefCell<Vec<Local>> = const { RefCell::new(Vec::new()) };
}

/// Uses the thread's part of a limiter. A thread that is about to end has none, and makes one for the occasion.
#[inline]
pub(super) fn with<R>(limiter: &Arc<Inner>, mut decide: impl FnMut(&mut Local) -> R) -> R {
    let decided = LOCALS.try_with(|locals| {
        let mut locals = locals.try_borrow_mut().ok()?;
        let is_it = |local: &Local| std::ptr::eq(local.limiter.as_ptr(), Arc::as_ptr(limiter));
        match locals.iter_mut().find(|local| is_it(local)) {
            Some(local) => Some(decide(local)),
            None => Some(decide(add(&mut locals, limiter))),
        }
    });
    match decided {
        Ok(Some(decided)) => decided,
        Ok(None) | Err(_) => decide(&mut Local::new(limiter)),
    }
}

#[cold]
fn add<'l>(locals: &'l mut Vec<Local>, limiter: &Arc<Inner>) -> &'l mut Local {
    locals.retain(|local| local.limiter.strong_count() > 0);
    locals.push(Local::new(limiter));
    let last = locals.len() - 1;
    &mut locals[last]
}
