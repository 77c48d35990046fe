//! What a thread has of a limiter: the rules it read last, its way to the records, and the cells it counts in.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Acquire};
use std::sync::{Arc, Weak};

use fastrand::Rng;

use super::Inner;
use super::cells::{self, Stripe};
use super::forms::Forms;
use super::rules::Rules;
use super::table::Table;

/// One thread's part of a limiter.
#[derive(Debug)]
pub(super) struct Local {
    limiter: Weak<Inner>,
    /// Kept until the thread decides again, or ends; so a reload leaves each thread its old rules until then.
    pub(super) rules: Arc<Rules>,
    pub(super) hands: Hands,
    pub(super) forms: Forms,
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
    #[inline(always)]
    pub(super) fn of_hot(&self, hot: u32) -> Option<&cells::Cell> {
        self.0.cell(hot.checked_sub(1)?)
    }
}

impl Local {
    pub(super) fn new(limiter: &Arc<Inner>) -> Self {
        let (stripe, threads, table) = limiter.ledger.join();
        Self {
            limiter: Arc::downgrade(limiter),
            rules: limiter.rules.load_full(),
            hands: Hands { stripe: Own(stripe), table, random: Rng::new(), threads },
            forms: Forms::default(),
        }
    }

    #[inline(always)]
    fn is_of(&self, limiter: &Arc<Inner>) -> bool {
        std::ptr::eq(self.limiter.as_ptr(), Arc::as_ptr(limiter))
    }
}

/// The rules in force, as a thread has them once it has looked whether there are newer ones.
#[inline(always)]
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

/// One for each limiter that the thread decides by: mostly one.
type Locals = Box<Vec<Local>>;

thread_local! {
    /// Taken out while the thread decides, so that the decision is no closure of a call, and what it says stays in registers.
    #[allow(clippy::box_collection, reason = "one word, which is taken out and put back")]
    static LOCALS: Cell<Option<Locals>> = const { Cell::new(None) };
}

/// Uses the thread's part of a limiter.
#[inline(always)]
pub(super) fn with<R>(limiter: &Arc<Inner>, decide: impl FnOnce(&mut Local) -> R) -> R {
    // None the first time, and in a thread that is about to end.
    let taken = LOCALS.try_with(Cell::take).ok().flatten();
    let mut locals = taken.unwrap_or_default();
    let place = match locals.iter().position(|local| local.is_of(limiter)) {
        Some(place) => place,
        None => add(&mut locals, limiter),
    };
    let decided = decide(&mut locals[place]);
    put_back(locals);
    decided
}

/// Looks at the thread's part of a limiter, if it has one.
pub(super) fn peek<R>(limiter: &Arc<Inner>, look: impl FnOnce(&Local) -> Option<R>) -> Option<R> {
    let locals = LOCALS.try_with(Cell::take).ok().flatten()?;
    let seen = locals.iter().find(|local| local.is_of(limiter)).and_then(look);
    put_back(locals);
    seen
}

/// Where there is no place for it any more, it ends with this decision.
#[inline(always)]
fn put_back(locals: Locals) {
    if let Ok(Some(others)) = LOCALS.try_with(|cell| cell.replace(Some(locals))) {
        leave(others);
    }
}

/// A decision within a decision had a part of its own.
#[cold]
#[inline(never)]
fn leave(others: Locals) {
    drop(others);
}

#[cold]
#[inline(never)]
fn add(locals: &mut Vec<Local>, limiter: &Arc<Inner>) -> usize {
    locals.retain(|local| local.limiter.strong_count() > 0);
    locals.push(Local::new(limiter));
    locals.len() - 1
}
