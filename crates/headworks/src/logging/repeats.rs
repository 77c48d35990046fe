//! What is told again and again: a fault that lasts for a night must neither fill a disk nor bury all else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

use crate::patience::{Patience, Reaction};

/// Lines of one kind at once: enough for the faults of a limits file that is saved a few times before it is right.
const AT_ONCE: u32 = 101;
/// And after that one in ten seconds.
const PER_SECOND: f64 = 0.1;

/// How much each kind of event, a place in the program, has told of late.
#[derive(Default)]
pub(super) struct Repeats(Mutex<HashMap<Identifier, Patience>>);

impl Repeats {
    /// Whether an event may be told; if so, how many of its kind were left out since the last that was. Whoever asks for
    /// more than information gets all of it.
    pub(super) fn pass(&self, event: &Metadata<'_>, now: Instant) -> Option<u64> {
        if *event.level() > Level::INFO {
            return Some(0);
        }
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kinds.entry(event.callsite()).or_insert_with(|| Patience::new(AT_ONCE, PER_SECOND, now));
        match kind.meet(now) {
            Reaction::Say { unsaid } => Some(unsaid),
            Reaction::Count => None,
        }
    }
}
