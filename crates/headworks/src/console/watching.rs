//! Which limits somebody looks at: only of these are zones and buckets gathered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The limits looked at, each with how many look.
#[derive(Clone, Debug, Default)]
pub(super) struct Watching(Arc<Mutex<BTreeMap<String, usize>>>);

/// One look at a limit; ends when dropped.
#[derive(Debug)]
pub(super) struct Look {
    watching: Watching,
    limit: String,
}

impl Watching {
    /// Begins to look at a limit.
    pub(super) fn look(&self, limit: &str) -> Look {
        *self.all().entry(limit.to_owned()).or_default() += 1;
        Look { watching: self.clone(), limit: limit.to_owned() }
    }

    /// The names of all limits looked at.
    pub(super) fn limits(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        let mut all = self.watching.all();
        if let Some(looks) = all.get_mut(&self.limit) {
            *looks -= 1;
            if *looks == 0 {
                all.remove(&self.limit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_watched_while_anybody_looks() {
        let watching = Watching::default();
        let (first, second) = (watching.look("a"), watching.look("a"));
        drop(first);
        assert_eq!(watching.limits(), ["a"]);
        drop(second);
        assert!(watching.limits().is_empty());
    }
}
