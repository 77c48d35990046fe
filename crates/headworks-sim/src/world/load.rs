//! Requests: how many of each stream reach each host in a step.

use std::collections::VecDeque;
use std::time::Duration;

use crate::chance::{Chance, round};
use crate::script::{Arrivals, Retries, Script};

/// What is offered to the fleet, and how it falls on hosts.
pub(super) struct Load {
    /// By stream: requests a second over the fleet.
    pub(super) rates: Vec<f64>,
    arrivals: Arrivals,
    pub(super) retries: Option<Retries>,
    step: Duration,
    zipf: f64,
    /// The sum of the weights of all hosts that load goes to.
    pub(super) weights: f64,
}

/// One host's part of the load.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) weight: f64,
    pub(super) drained: bool,
    /// By stream: what is due of a request that comes like clockwork.
    due: Vec<f64>,
    /// Refused calls that come again: when, of which stream, how many, and how often they may once more.
    again: VecDeque<(Duration, usize, u32, u8)>,
}

impl Load {
    pub(super) fn new(script: &Script) -> Self {
        Self {
            rates: vec![0.0; script.streams.len()],
            arrivals: script.arrivals,
            retries: script.retries,
            step: script.step,
            zipf: script.zipf,
            weights: 0.0,
        }
    }

    /// The part of the host of this place; the first has most.
    pub(super) fn part(&self, place: usize, chance: &mut Chance) -> Part {
        #[allow(clippy::cast_precision_loss, reason = "places of hosts")]
        let weight = ((place + 1) as f64).powf(-self.zipf);
        Part {
            weight,
            drained: false,
            due: self.rates.iter().map(|_| chance.unit()).collect(),
            again: VecDeque::new(),
        }
    }

    /// New requests of a stream at a host.
    pub(super) fn arrivals(&self, stream: usize, part: &mut Part, chance: &mut Chance) -> u32 {
        if part.drained || self.weights <= 0.0 {
            return 0;
        }
        let mean = self.rates[stream] * part.weight / self.weights * self.step.as_secs_f64();
        if mean <= 0.0 {
            return 0;
        }
        match self.arrivals {
            Arrivals::Poisson => chance.poisson(mean),
            Arrivals::Even => {
                part.due[stream] += mean;
                let whole = part.due[stream].floor();
                part.due[stream] -= whole;
                round(whole)
            }
            Arrivals::Pulses(size) => {
                part.due[stream] += mean / size;
                let whole = part.due[stream].floor();
                part.due[stream] -= whole;
                round(whole * size)
            }
            Arrivals::Batches(size) => (0..chance.poisson(mean / size)).map(|_| chance.batch(size)).sum(),
        }
    }

    /// Refused requests come again, if they do.
    pub(super) fn refuse(
        &self,
        stream: usize,
        refused: u32,
        left: Option<u8>,
        part: &mut Part,
        now: Duration,
        chance: &mut Chance,
    ) {
        let Some(retries) = self.retries else { return };
        let left = left.unwrap_or(retries.at_most);
        if refused == 0 || left == 0 {
            return;
        }
        let again = (0..refused).filter(|_| chance.unit() < retries.part).count();
        let again = u32::try_from(again).unwrap_or(u32::MAX);
        part.again.push_back((now + retries.after, stream, again, left - 1));
    }
}

impl Part {
    /// A refused request whose time has come again: of which stream, how many, and how often once more.
    pub(super) fn next_again(&mut self, now: Duration) -> Option<(usize, u32, u8)> {
        let due = self.again.front().is_some_and(|(time, ..)| *time <= now);
        due.then(|| self.again.pop_front()).flatten().map(|(_, stream, count, left)| (stream, count, left))
    }
}
