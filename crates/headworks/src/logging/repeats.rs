//! What is told again and again: a fault that lasts for a night must neither fill a disk nor bury all else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

/// Lines of one kind at once: as many as tell the faults of a limits file.
const AT_ONCE: u32 = 101;
/// After that, one in this time.
const SPACING: Duration = Duration::from_secs(10);

/// How much each kind of event, a place in the program, has told of late.
#[derive(Default)]
pub(super) struct Repeats(Mutex<HashMap<Identifier, Kind>>);

impl Repeats {
    /// Whether an event may be told; if so, how many of its kind were left out since the last that was. Whoever asks for
    /// more than information gets all of it.
    pub(super) fn pass(&self, event: &Metadata<'_>, now: Instant) -> Option<u64> {
        if *event.level() > Level::INFO {
            return Some(0);
        }
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.entry(event.callsite()).or_insert_with(|| Kind::new(now)).pass(now)
    }
}

/// One kind: a bucket of lines, and how many did not get one.
struct Kind {
    lines: u32,
    /// Up to when lines were added.
    at: Instant,
    left_out: u64,
}

impl Kind {
    fn new(now: Instant) -> Self {
        Self { lines: AT_ONCE, at: now, left_out: 0 }
    }

    fn pass(&mut self, now: Instant) -> Option<u64> {
        while self.lines < AT_ONCE && now.duration_since(self.at) >= SPACING {
            self.lines += 1;
            self.at += SPACING;
        }
        if self.lines == AT_ONCE {
            self.at = now;
        }
        if self.lines == 0 {
            self.left_out += 1;
            return None;
        }
        self.lines -= 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_is_told_at_first_and_then_now_and_then_with_how_much_was_left_out() {
        let start = Instant::now();
        let mut kind = Kind::new(start);
        let told = |kind: &mut Kind, tenths: std::ops::Range<u32>| -> Vec<u64> {
            tenths.filter_map(|tenth| kind.pass(start + Duration::from_millis(100) * tenth)).collect()
        };
        assert_eq!(told(&mut kind, 0..1000).len(), 101 + 9);
        assert_eq!(told(&mut kind, 1000..1201), [99, 99, 99]);
        // After a rest of a minute six more at once.
        assert_eq!(told(&mut kind, 1801..2000), [0, 0, 0, 0, 0, 0, 93]);
    }

    #[test]
    fn what_comes_now_and_then_is_always_told() {
        let start = Instant::now();
        let mut kind = Kind::new(start);
        assert!((0..1000).all(|number| kind.pass(start + SPACING * number) == Some(0)));
    }
}
