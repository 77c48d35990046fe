//! What a surge is measured by. Pure: requests in, figures out.

use std::time::Duration;

use serde::Serialize;

use crate::load::Sample;

/// Requests are counted by the time they were sent, in bins of this length.
const BIN: Duration = Duration::from_millis(10);
/// Bins of a sum that has to be near the limit: 300 ms, in which a limit of some thousands a second admits enough that
/// chance moves the sum by a few percent only.
const SETTLING: usize = 30;
/// The part of the limit by which such a sum may be off.
const SLACK: f64 = 0.08;
/// Bins of the sums of which the highest is the peak: 100 ms.
const PEAK: usize = 10;

/// What was wanted of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Requests a second that the fleet may admit.
    pub(super) limit: f64,
    /// Requests a second before the step.
    pub(super) before: f64,
    /// Requests a second after it.
    pub(super) after: f64,
    /// Time before the step.
    pub(super) warm_up: Duration,
    /// Time after it.
    pub(super) surge: Duration,
}

/// The figures of one run. Rates are in requests a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Seconds from the step until what is admitted stays near the limit; nothing if it never does.
    pub(super) settle_s: Option<f64>,
    /// What was admitted above the limit until then, in seconds' worth of the limit.
    pub(super) excess_s: f64,
    /// The highest 100 ms of the surge, in multiples of the limit.
    pub(super) peak: f64,
    /// Admitted before the step.
    pub(super) admitted_before: f64,
    /// Admitted after it.
    pub(super) admitted_after: f64,
    /// Wanted, and answered, before the step.
    pub(super) wanted_before: f64,
    pub(super) offered_before: f64,
    /// Wanted, and answered, after it.
    pub(super) wanted_after: f64,
    pub(super) offered_after: f64,
    /// Requests that got no verdict.
    pub(super) unanswered: usize,
    /// How much later than wanted the requests of the surge were sent, in milliseconds: 99 of 100, and all.
    pub(super) late_p99_ms: f64,
    pub(super) late_max_ms: f64,
}

impl Figures {
    /// The figures of these requests.
    pub(super) fn of(samples: &[Sample], wanted: &Wanted) -> Self {
        let bins = Bins::of(samples, wanted.warm_up, wanted.surge);
        let settled = bins.settled(wanted.limit);
        let (warm_up, surge) = bins.spans();
        let late = Lateness::of(samples, wanted.warm_up);
        Self {
            settle_s: settled.map(seconds),
            excess_s: bins.excess(wanted.limit, settled),
            peak: bins.peak(wanted.limit),
            admitted_before: total(&bins.admitted[..bins.step]) / warm_up,
            admitted_after: total(&bins.admitted[bins.step..]) / surge,
            wanted_before: wanted.before,
            offered_before: total(&bins.offered[..bins.step]) / warm_up,
            wanted_after: wanted.after,
            offered_after: total(&bins.offered[bins.step..]) / surge,
            unanswered: samples.iter().filter(|sample| sample.allowed.is_none()).count(),
            late_p99_ms: late.p99.as_secs_f64() * 1e3,
            late_max_ms: late.max.as_secs_f64() * 1e3,
        }
    }
}

/// Answered requests, counted by bins.
#[derive(Clone, Debug, PartialEq)]
struct Bins {
    offered: Vec<u32>,
    admitted: Vec<u32>,
    /// The first bin of the surge.
    step: usize,
}

impl Bins {
    fn of(samples: &[Sample], warm_up: Duration, surge: Duration) -> Self {
        let step = count(warm_up);
        let empty = vec![0; step + count(surge)];
        let mut bins = Self { offered: empty.clone(), admitted: empty, step };
        for sample in samples {
            let place = bins.place(sample.sent, warm_up).filter(|place| *place < bins.offered.len());
            let (Some(place), Some(allowed)) = (place, sample.allowed) else { continue };
            bins.offered[place] += 1;
            bins.admitted[place] += u32::from(allowed);
        }
        bins
    }

    /// Bins are counted from the step, so that none has a part before it and a part after it.
    fn place(&self, sent: Duration, warm_up: Duration) -> Option<usize> {
        match sent.checked_sub(warm_up) {
            Some(after) => Some(self.step + count(after)),
            None => {
                let before = warm_up - sent - Duration::from_nanos(1);
                self.step.checked_sub(count(before) + 1)
            }
        }
    }

    /// Seconds of the bins before the step, and after it.
    fn spans(&self) -> (f64, f64) {
        (seconds(self.step), seconds(self.offered.len() - self.step))
    }

    /// Bins from the step to the first one from which on every sum of 300 ms, up to the end of the surge, is near the
    /// limit. A sum belongs to the bin that it ends with, and may reach back to before the step.
    fn settled(&self, limit: f64) -> Option<usize> {
        let wanted = limit * seconds(SETTLING);
        let is_near = |end: usize| {
            let sum = total(&self.admitted[end.saturating_sub(SETTLING)..end]);
            (sum - wanted).abs() <= wanted * SLACK
        };
        let ends = self.step + 1..=self.admitted.len();
        let near = ends.rev().take_while(|end| is_near(*end)).count();
        (near > 0).then(|| self.admitted.len() - self.step - near + 1)
    }

    /// What was admitted above the limit, in seconds' worth of it, from the step until it settled, or to the end.
    fn excess(&self, limit: f64, settled: Option<usize>) -> f64 {
        let surge = &self.admitted[self.step..];
        let counted = &surge[..settled.unwrap_or(surge.len())];
        (total(counted) / limit - seconds(counted.len())).max(0.0)
    }

    /// The highest sum of 100 ms after the step, in multiples of the limit.
    fn peak(&self, limit: f64) -> f64 {
        let sums = self.admitted[self.step..].windows(PEAK).map(total);
        sums.fold(0.0, f64::max) / (limit * seconds(PEAK))
    }
}

fn total(bins: &[u32]) -> f64 {
    bins.iter().map(|bin| f64::from(*bin)).sum()
}

/// Whole bins in a time.
fn count(time: Duration) -> usize {
    usize::try_from(time.as_nanos() / BIN.as_nanos()).unwrap_or(usize::MAX / 4)
}

fn seconds(bins: usize) -> f64 {
    bins as f64 * BIN.as_secs_f64()
}

/// How much later than wanted requests were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lateness {
    p99: Duration,
    max: Duration,
}

impl Lateness {
    /// Of the requests that were due after the step.
    fn of(samples: &[Sample], step: Duration) -> Self {
        let surge = samples.iter().filter(|sample| sample.due >= step);
        let mut late: Vec<_> = surge.map(|sample| sample.sent.saturating_sub(sample.due)).collect();
        late.sort_unstable();
        let Some(max) = late.last().copied() else { return Self::default() };
        Self { p99: late[(late.len() * 99).div_ceil(100) - 1], max }
    }
}

/// The median of some runs, with the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Spread {
    /// Nothing of nothing. What never came is infinite, which sorts last and makes a median of its like infinite.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let lower = values[(values.len() - 1) / 2];
        Some(Self { low, median: (lower + values[middle]) / 2.0, high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bins of these counts, each for so many bins, with the step before the second of them; everything is admitted.
    fn bins(counts: &[(u32, usize)]) -> Bins {
        let admitted: Vec<u32> = counts.iter().flat_map(|(count, bins)| vec![*count; *bins]).collect();
        Bins { offered: admitted.clone(), admitted, step: counts[0].1 }
    }

    /// 1000 a second are 10 in a bin.
    const LIMIT: f64 = 1000.0;

    fn close(is: f64, wanted: f64) {
        assert!((is - wanted).abs() < 1e-9, "{is} is not {wanted}");
    }

    #[test]
    fn settles_when_the_last_sum_that_is_off_is_behind() {
        // 200 ms at four times the limit, then the limit: sums are off until they hold less than 24 beyond 300.
        let surge = bins(&[(9, 100), (40, 20), (10, 200)]);
        // The last burst bin leaves the sum 50 bins after the step; alone, its 30 too many are over the 24 allowed.
        assert_eq!(surge.settled(LIMIT), Some(50));
    }

    #[test]
    fn one_late_dip_counts() {
        let surge = bins(&[(10, 100), (10, 100), (0, 3), (10, 97)]);
        // Three bins without anything are off by 30; with the first of them out of the sum, 20 is within the slack.
        assert_eq!(surge.settled(LIMIT), Some(100 + 1 + 30));
    }

    #[test]
    fn what_is_never_off_settles_at_once() {
        assert_eq!(bins(&[(10, 100), (10, 200)]).settled(LIMIT), Some(1));
    }

    #[test]
    fn what_is_off_in_the_end_never_settles() {
        assert_eq!(bins(&[(10, 100), (11, 300)]).settled(LIMIT), None);
        assert_eq!(bins(&[(10, 100), (10, 290), (0, 10)]).settled(LIMIT), None);
    }

    #[test]
    fn sums_reach_back_to_before_the_step() {
        // Nothing before: the sum needs 28 bins of the surge.
        assert_eq!(bins(&[(0, 100), (10, 200)]).settled(LIMIT), Some(28));
    }

    #[test]
    fn excess_is_what_came_through_above_the_limit_until_it_settled() {
        let surge = bins(&[(9, 100), (40, 20), (10, 200)]);
        close(surge.excess(LIMIT, surge.settled(LIMIT)), 0.6);
        close(surge.excess(LIMIT, Some(10)), 0.3);
    }

    #[test]
    fn excess_of_what_never_settles_counts_to_the_end() {
        close(bins(&[(10, 100), (11, 300)]).excess(LIMIT, None), 0.3);
    }

    #[test]
    fn too_little_is_no_excess() {
        close(bins(&[(10, 100), (0, 20), (10, 200)]).excess(LIMIT, Some(50)), 0.0);
    }

    #[test]
    fn peak_is_the_highest_tenth_of_a_second_of_the_surge() {
        close(bins(&[(90, 100), (10, 50), (40, 5), (10, 200)]).peak(LIMIT), 2.5);
        close(bins(&[(0, 100), (40, 20), (10, 200)]).peak(LIMIT), 4.0);
    }

    fn sample(sent_ms: u64, allowed: Option<bool>) -> Sample {
        let sent = Duration::from_millis(sent_ms);
        Sample { due: sent, sent, allowed }
    }

    #[test]
    fn a_request_counts_when_it_was_sent_if_it_was_answered() {
        let samples = [
            sample(4, Some(true)),
            sample(14, Some(true)),
            sample(15, Some(false)),
            sample(24, Some(true)),
            sample(25, None),
            sample(34, Some(true)),
            sample(35, Some(true)),
        ];
        // A warm-up of one and a half bins: the first half is left out, and the step is where a bin begins. The last
        // request comes after the end.
        let bins = Bins::of(&samples, Duration::from_millis(15), Duration::from_millis(20));
        assert_eq!(bins, Bins { offered: vec![1, 2, 1], admitted: vec![1, 1, 1], step: 1 });
    }

    #[test]
    fn figures_tell_what_was_offered_and_what_was_wanted() {
        let second = Duration::from_secs(1);
        let wanted = Wanted { limit: 100.0, before: 100.0, after: 400.0, warm_up: second, surge: second };
        let before = (0..1000).step_by(10).map(|ms| sample(ms, Some(true)));
        let after = (0..400).map(|n| sample(1000 + n * 5 / 2, Some(n % 4 == 0)));
        let figures =
            Figures::of(&before.chain(after).chain([sample(1500, None)]).collect::<Vec<_>>(), &wanted);
        close(figures.offered_before, 100.0);
        close(figures.offered_after, 400.0);
        close(figures.admitted_after, 100.0);
        assert_eq!((figures.settle_s, figures.unanswered), (Some(0.01), 1));
        close(figures.peak, 1.0);
    }

    #[test]
    fn lateness_is_that_of_the_surge() {
        let late = |due_ms, late_ms| {
            let due = Duration::from_millis(due_ms);
            Sample { due, sent: due + Duration::from_millis(late_ms), allowed: Some(true) }
        };
        let surge = (0..99).map(|ms| late(1000 + ms, 1)).chain([late(1099, 7)]);
        let samples: Vec<_> = [late(0, 50)].into_iter().chain(surge).collect();
        let [p99, max] = [1, 7].map(Duration::from_millis);
        assert_eq!(Lateness::of(&samples, Duration::from_secs(1)), Lateness { p99, max });
        assert_eq!(Lateness::of(&[], Duration::ZERO), Lateness::default());
    }

    #[test]
    fn a_median_stands_between_lowest_and_highest() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { low: 1.0, median: 2.0, high: 3.0 }));
        assert_eq!(of(&[4.0, 1.0]), Some(Spread { low: 1.0, median: 2.5, high: 4.0 }));
        assert_eq!(of(&[]), None);
        let never = of(&[1.0, f64::INFINITY, f64::INFINITY]).unwrap();
        assert_eq!((never.low, never.median), (1.0, f64::INFINITY));
    }
}
