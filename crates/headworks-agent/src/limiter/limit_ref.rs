//! The limit that a verdict rests on, without a count of its own.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use arc_swap::Guard;
use headworks_core::limits::Limit;

use super::rules::Rules;

/// A limit as it was when a request was decided: it lives as long as this does, whatever is put in force meanwhile.
///
/// It keeps the whole snapshot of the rules that the decision read, which costs nothing, where a clone of the limit's [`Arc`]
/// would be written to by every thread. Keep the [`Arc`] that [`LimitRef::to_arc`] gives if a limit is to be kept for long.
pub struct LimitRef(Source);

enum Source {
    /// It has this place in the rules.
    Rules(Guard<Arc<Rules>>, usize),
    Alone(Arc<Limit>),
}

impl LimitRef {
    #[inline]
    pub(super) fn new(rules: Guard<Arc<Rules>>, place: usize) -> Self {
        Self(Source::Rules(rules, place))
    }

    /// The limit by itself.
    pub fn to_arc(&self) -> Arc<Limit> {
        self.arc().clone()
    }

    fn arc(&self) -> &Arc<Limit> {
        match &self.0 {
            Source::Rules(rules, place) => rules.limit(*place),
            Source::Alone(limit) => limit,
        }
    }
}

impl Deref for LimitRef {
    type Target = Limit;

    fn deref(&self) -> &Limit {
        self.arc()
    }
}

impl From<Arc<Limit>> for LimitRef {
    fn from(limit: Arc<Limit>) -> Self {
        Self(Source::Alone(limit))
    }
}

impl Clone for LimitRef {
    fn clone(&self) -> Self {
        self.to_arc().into()
    }
}

impl fmt::Debug for LimitRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.arc().fmt(f)
    }
}
