//! Children that left: their counts are remembered for a while, so that those who come back are not counted twice.

use std::collections::HashMap;
use std::time::Duration;

use super::child::{Child, CountsLeft};
use crate::message::{Hello, Incarnation};
use crate::units::Moment;

/// How long they are remembered.
pub(super) const REMEMBERED: Duration = Duration::from_secs(120);
/// Most of them, and most of what they counted: names that come once must not fill the memory.
const MOST: usize = 20_000;
const MOST_COUNTS: usize = 1_000_000;

#[derive(Debug)]
struct Left {
    at: Moment,
    counts: CountsLeft,
}

/// All that left a short while ago.
#[derive(Debug, Default)]
pub(super) struct Departed {
    children: HashMap<(String, Incarnation), Left>,
    counts: usize,
}

impl Departed {
    /// A child left. Without room for it, it is counted from its first report when it comes back.
    pub(super) fn remember(&mut self, child: &Child, now: Moment) {
        let name = (child.hello.node.clone(), child.hello.incarnation);
        self.take(&child.hello);
        let Some(counts) = child.counts_left() else { return };
        if self.children.len() < MOST && self.counts + counts.len() <= MOST_COUNTS {
            self.counts += counts.len();
            self.children.insert(name, Left { at: now, counts });
        }
    }

    /// What a child that is back had counted when it left; it is remembered no longer.
    pub(super) fn take(&mut self, hello: &Hello) -> Option<CountsLeft> {
        let left = self.children.remove(&(hello.node.clone(), hello.incarnation))?;
        self.counts -= left.counts.len();
        Some(left.counts)
    }

    /// Forgets those who will not come back.
    pub(super) fn forget_old(&mut self, now: Moment) {
        let counts = &mut self.counts;
        self.children.retain(|_, left| {
            let stays = now.since(left.at) < REMEMBERED;
            *counts -= if stays { 0 } else { left.counts.len() };
            stays
        });
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.children.len()
    }
}
