//! What each limit was offered at the last looks, as a line of blocks.

use std::collections::{HashMap, VecDeque};

use crate::status::LimitView;

/// Looks remembered.
const KEPT: usize = 20;
/// Most limits remembered: of a hundred thousand, few have traffic.
const MOST_LIMITS: usize = 10_000;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// See the module.
#[derive(Debug, Default)]
pub(super) struct History(HashMap<String, VecDeque<f64>>);

impl History {
    /// Takes down what limits are offered now.
    pub(super) fn take(&mut self, limits: &[LimitView]) {
        let mut last = std::mem::take(&mut self.0);
        for limit in limits {
            let known = last.remove(&limit.name);
            if known.is_none() && (limit.offered <= 0.0 || self.0.len() >= MOST_LIMITS) {
                continue;
            }
            let mut looks = known.unwrap_or_default();
            if looks.len() >= KEPT {
                looks.pop_front();
            }
            looks.push_back(limit.offered);
            if looks.iter().any(|offered| *offered > 0.0) {
                self.0.insert(limit.name.clone(), looks);
            }
        }
    }

    /// The looks at a limit, the last one at the right: against the highest of them, or its limit if that is higher.
    pub(super) fn line(&self, limit: &LimitView) -> String {
        let Some(looks) = self.0.get(&limit.name) else { return String::new() };
        let own = limit.rate.filter(|_| limit.buckets <= 1).unwrap_or(0.0);
        let highest = looks.iter().copied().fold(own, f64::max);
        let line: String = looks.iter().map(|offered| block(offered / highest)).collect();
        format!("{line:>KEPT$}")
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=7")]
fn block(part: f64) -> char {
    if part > 0.0 { BLOCKS[((part * 8.0).ceil() as usize).clamp(1, 8) - 1] } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::fixture::limit;

    #[test]
    fn a_line_is_as_high_as_demand_is_of_the_limit() {
        let mut history = History::default();
        for offered in [0.0, 100.0, 200.0, 400.0, 0.0] {
            history.take(&[limit("a", offered)]);
        }
        assert_eq!(history.line(&limit("a", 0.0)).trim_start(), "▂▄█ ");
        for _ in 0..KEPT {
            history.take(&[limit("a", 800.0)]);
        }
        assert_eq!(history.line(&limit("a", 0.0)), "█".repeat(KEPT));
        assert_eq!(history.line(&limit("b", 0.0)), "");
    }

    #[test]
    fn what_is_quiet_or_gone_is_forgotten() {
        let mut history = History::default();
        history.take(&[limit("a", 5.0), limit("b", 5.0)]);
        history.take(&[limit("a", 5.0)]);
        assert_eq!(history.0.len(), 1);
        for _ in 0..KEPT {
            history.take(&[limit("a", 0.0)]);
        }
        assert!(history.0.is_empty());
    }
}
