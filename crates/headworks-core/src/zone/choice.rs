//! Which controller an aggregator obeys: all compute the same from the same reports, so what counts is who hears most.
//!
//! Two halves of a partition would each hand out the whole limit; a zone that hears both goes by the wider view.

use std::time::Duration;

use super::ParentIndex;
use crate::message::View;
use crate::units::Moment;

/// Demands nearer to each other than this are the same demand, told at different moments.
const SAME: f64 = 1.1;
/// How long a view must have been the wider one: reports reach controllers one after the other.
const WIDER_FOR: Duration = Duration::from_secs(2);
/// How long one that comes earlier in the configured order must have been as wide, before all turn back to it. Longer than
/// a controller learns after a restart.
const EARLIER_FOR: Duration = Duration::from_secs(20);

/// One controller, as it stands for being obeyed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// What it heard; `None` if it never sent a plan.
    pub(super) view: Option<View>,
    pub(super) is_attached: bool,
    pub(super) is_fresh: bool,
}

impl Candidate {
    /// Whether it is heard now.
    pub(super) fn is_heard(&self) -> bool {
        self.is_attached && self.is_fresh && self.view.is_some()
    }

    /// Heard before fresh, fresh before old.
    fn rank(&self) -> u8 {
        u8::from(self.is_fresh) + u8::from(self.is_heard())
    }
}

/// In what the controllers that an aggregator hears differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disagreement {
    /// One hears more of the fleet than another: somebody is cut off from it.
    pub views: bool,
    /// They go by different limits.
    pub limits: bool,
}

/// The controller that is obeyed, and who may follow.
#[derive(Debug, Default)]
pub(super) struct Choice {
    obeyed: Option<ParentIndex>,
    contender: Option<Contender>,
}

#[derive(Clone, Copy, Debug)]
struct Contender {
    index: ParentIndex,
    since: Moment,
}

impl Choice {
    /// The controller that is obeyed.
    pub(super) fn obeyed(&self) -> Option<ParentIndex> {
        self.obeyed
    }

    /// The controller to obey now.
    pub(super) fn next(&mut self, candidates: &[Candidate], now: Moment) -> Option<ParentIndex> {
        let best = best_of(candidates)?;
        let current = *self.obeyed.get_or_insert(best);
        match patience(candidates, current, best) {
            None => self.contender = None,
            Some(patience) => {
                let known = self.contender.filter(|contender| contender.index == best);
                let contender =
                    *self.contender.insert(known.unwrap_or(Contender { index: best, since: now }));
                if now.since(contender.since) >= patience {
                    (self.obeyed, self.contender) = (Some(best), None);
                }
            }
        }
        self.obeyed
    }
}

/// How long `best` must have been the best before it is obeyed in place of `current`; `None` if it is no better.
fn patience(candidates: &[Candidate], current: ParentIndex, best: ParentIndex) -> Option<Duration> {
    let (ours, other) = (&candidates[current], &candidates[best]);
    if best == current {
        None
    } else if other.rank() > ours.rank() {
        Some(Duration::ZERO)
    } else if is_wider(other.view, ours.view) {
        Some(WIDER_FOR)
    } else {
        Some(EARLIER_FOR)
    }
}

/// The best by rank, then by view, then by the configured order.
fn best_of(candidates: &[Candidate]) -> Option<ParentIndex> {
    let known = (0..candidates.len()).filter(|index| candidates[*index].view.is_some());
    known.reduce(|best, other| {
        let (a, b) = (&candidates[best], &candidates[other]);
        let better = b.rank() > a.rank() || b.rank() == a.rank() && is_wider(b.view, a.view);
        if better { other } else { best }
    })
}

fn is_wider(one: Option<View>, other: Option<View>) -> bool {
    let (a, b) = (one.unwrap_or_default(), other.unwrap_or_default());
    a.aggregators > b.aggregators || a.aggregators == b.aggregators && a.demand > SAME * b.demand + 1.0
}

/// Whether one of these views is wider than another.
pub(super) fn differ(views: impl Iterator<Item = View>) -> bool {
    let views: Vec<View> = views.collect();
    views.iter().any(|one| views.iter().any(|other| is_wider(Some(*one), Some(*other))))
}

/// Whether they are not all the same.
pub(super) fn are_several<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    values.next().is_some_and(|first| values.any(|other| other != first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(aggregators: u32, demand: f64) -> Candidate {
        let view = Some(View { aggregators, agents: 10, demand });
        Candidate { view, is_attached: true, is_fresh: true }
    }

    fn at(seconds: u64) -> Moment {
        Moment::after(Duration::from_secs(seconds))
    }

    /// Who is obeyed at each second when these are the candidates.
    fn obeyed(choice: &mut Choice, candidates: &[Candidate], seconds: std::ops::Range<u64>) -> Vec<usize> {
        seconds.map(|second| choice.next(candidates, at(second)).unwrap()).collect()
    }

    #[test]
    fn nobody_is_obeyed_who_never_sent_a_plan() {
        let silent = Candidate { view: None, is_attached: true, is_fresh: false };
        assert_eq!(Choice::default().next(&[silent, silent], at(0)), None);
        assert_eq!(Choice::default().next(&[silent, hears(1, 10.0)], at(0)), Some(1));
    }

    #[test]
    fn the_first_of_equals_is_obeyed() {
        assert_eq!(obeyed(&mut Choice::default(), &[hears(2, 100.0), hears(2, 105.0)], 0..30), [0; 30]);
    }

    #[test]
    fn the_wider_view_is_obeyed_once_it_has_lasted() {
        let mut choice = Choice::default();
        choice.next(&[hears(2, 100.0), hears(2, 100.0)], at(0));
        assert_eq!(obeyed(&mut choice, &[hears(1, 60.0), hears(2, 100.0)], 1..6), [0, 0, 1, 1, 1]);
    }

    #[test]
    fn views_that_are_wider_for_a_moment_change_nothing() {
        let mut choice = Choice::default();
        for second in 0..20 {
            let (first, other) = if second % 2 == 0 { (100.0, 150.0) } else { (150.0, 100.0) };
            choice.obeyed = Some(0);
            assert_eq!(choice.next(&[hears(2, first), hears(2, other)], at(second)), Some(0));
        }
    }

    #[test]
    fn one_that_is_lost_is_left_at_once() {
        let lost = Candidate { is_attached: false, ..hears(2, 100.0) };
        let old = Candidate { is_fresh: false, ..hears(2, 100.0) };
        for gone in [lost, old] {
            let mut choice = Choice::default();
            choice.next(&[hears(2, 100.0), hears(1, 50.0)], at(0));
            assert_eq!(choice.next(&[gone, hears(1, 50.0)], at(1)), Some(1));
        }
    }

    #[test]
    fn all_turn_back_to_the_configured_order_when_it_has_proved_itself() {
        let mut choice = Choice::default();
        let lost = Candidate { is_attached: false, ..hears(2, 100.0) };
        choice.next(&[lost, hears(2, 100.0)], at(0));
        let obeyed = obeyed(&mut choice, &[hears(2, 100.0), hears(2, 100.0)], 1..30);
        assert_eq!(obeyed.iter().position(|index| *index == 0), Some(20));
    }

    #[test]
    fn controllers_disagree_when_one_hears_more() {
        let views =
            |candidates: &[Candidate]| differ(candidates.iter().filter_map(|candidate| candidate.view));
        assert!(!views(&[hears(2, 100.0), hears(2, 104.0)]));
        assert!(!views(&[hears(2, 100.0)]));
        assert!(views(&[hears(2, 100.0), hears(1, 100.0)]));
        assert!(views(&[hears(2, 100.0), hears(2, 150.0)]));
        assert!(are_several([1, 2].iter()) && !are_several([1, 1].iter()));
    }
}
