//! What the console knows: the last sample, the points of the last minutes, zones that were here, and what viewers were told of it.

use std::collections::{BTreeMap, HashMap};

use axum::body::Bytes;

use super::refused::RefusalSummary;
use super::sample::Sample;
use super::series::Series;
use super::view::{self, Asked, Head};
use crate::status::NodeStatus;

/// How long a zone that is gone is told of, in seconds.
const REMEMBERED: f64 = 600.0;
/// Most zones told of.
const MOST_ZONES: usize = 1000;

/// Most events kept until the next sample: whoever changes what it looks at many times a second has them made anew.
const MOST_TOLD: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Board {
    now: Option<Known>,
    pub(super) series: Series,
    pub(super) zones: Zones,
    /// Viewers that look at the same thing are sent the same bytes.
    told: HashMap<Asked, Bytes>,
}

/// The last sample, and when it was taken.
pub(super) struct Known {
    pub(super) sample: Sample,
    /// What stands above every page.
    pub(super) head: Head,
    /// In seconds since 1970.
    pub(super) at: f64,
}

/// Zones that were heard, each with when that was last.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<String, f64>);

impl Board {
    /// Takes in a sample.
    pub(super) fn take(&mut self, sample: Sample, refusals: RefusalSummary, at: f64) {
        self.series.add(at, &sample.status.limits);
        self.zones.take(&sample.status, at);
        let head = Head::of(&sample.status, refusals, at);
        self.now = Some(Known { sample, head, at });
        self.told.clear();
    }

    /// The event for whoever asks this, if it was made already.
    pub(super) fn told(&self, asked: &Asked) -> Option<Bytes> {
        self.told.get(asked).cloned()
    }

    /// Makes an event with what is asked for; nothing before the first sample.
    pub(super) fn render(&mut self, asked: &Asked) -> Option<Bytes> {
        let known = self.now.as_ref()?;
        let json = view::render(asked, known, &self.series, &self.zones);
        let event = Bytes::from(format!("data: {json}\n\n"));
        if self.told.len() < MOST_TOLD {
            self.told.insert(asked.clone(), event.clone());
        }
        Some(event)
    }
}

impl Zones {
    fn take(&mut self, status: &NodeStatus, at: f64) {
        for zone in &status.zones {
            if self.0.len() < MOST_ZONES || self.0.contains_key(&zone.zone) {
                self.0.insert(zone.zone.clone(), at);
            }
        }
        self.0.retain(|_, heard| at - *heard < REMEMBERED);
    }

    /// Those that are not heard now, each with the seconds since they were.
    pub(super) fn away(&self, at: f64) -> impl Iterator<Item = (&str, f64)> {
        self.0
            .iter()
            .filter(move |(_, heard)| **heard < at)
            .map(move |(zone, heard)| (zone.as_str(), at - heard))
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::fixture::{limit, sample};
    use super::*;

    fn zone(name: &str) -> crate::status::Zone {
        crate::status::Zone { zone: name.to_owned(), aggregators: 1, agents: 2 }
    }

    #[test]
    fn viewers_of_the_same_share_one_computation_until_the_next_sample() {
        let mut board = Board::default();
        let asked = Asked::default();
        assert_eq!((board.render(&asked), board.told(&asked)), (None, None));
        board.take(sample(vec![limit("a", 5.0)]), RefusalSummary::default(), 1.0);
        let (first, second) = (board.render(&asked).unwrap(), board.told(&asked).unwrap());
        assert_eq!(first.as_ptr(), second.as_ptr());
        assert!(first.starts_with(b"data: {") && first.ends_with(b"}\n\n"));
        board.take(sample(vec![limit("a", 7.0)]), RefusalSummary::default(), 2.0);
        assert_eq!(board.told(&asked), None);
        assert_ne!(board.render(&asked).unwrap(), first);
    }

    #[test]
    fn a_zone_that_is_gone_is_told_of_for_ten_minutes() {
        let mut zones = Zones::default();
        let with = |zones| NodeStatus { zones, ..NodeStatus::default() };
        zones.take(&with(vec![zone("a"), zone("b")]), 100.0);
        zones.take(&with(vec![zone("a")]), 130.0);
        assert_eq!(zones.away(130.0).collect::<Vec<_>>(), [("b", 30.0)]);
        zones.take(&with(vec![zone("a")]), 701.0);
        assert_eq!(zones.away(701.0).count(), 0);
    }
}
