//! Which aggregator of its zone a host turns to: as in the program, each has an order of its own, and the next one's turn
//! comes with each failure.

use std::time::Duration;

use headworks_core::message::Incarnation;

/// How long a host stays with another one than it prefers: so long that a preferred one that flaps does not make it flap.
const STAYS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60));

/// A host's order of the aggregators of its zone, and where in it the host is.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    order: Vec<usize>,
    turn: usize,
    /// When it goes back to the one it prefers.
    pub(super) back_at: Option<Duration>,
}

impl Choice {
    /// Rendezvous hashing by who the host is.
    pub(super) fn of(life: Incarnation, aggregators: usize) -> Self {
        let mut order: Vec<usize> = (0..aggregators).collect();
        order.sort_by_key(|place| std::cmp::Reverse(rank(life.0, *place as u64)));
        Self { order, turn: 0, back_at: None }
    }

    /// The place, within the zone, of the aggregator to try.
    pub(super) fn place(&self) -> usize {
        self.order.get(self.turn).copied().unwrap_or(0)
    }

    pub(super) fn preferred(&self) -> usize {
        self.order.first().copied().unwrap_or(0)
    }

    /// It does not answer: the next one.
    pub(super) fn failed(&mut self) {
        self.turn = (self.turn + 1) % self.order.len().max(1);
    }

    /// It answers. `random` is drawn only where there is another one to go back to.
    pub(super) fn attached(&mut self, now: Duration, random: impl FnOnce() -> f64) {
        self.back_at =
            (self.turn > 0).then(|| now + STAYS.0 + (STAYS.1.saturating_sub(STAYS.0)).mul_f64(random()));
    }

    pub(super) fn go_back(&mut self) {
        (self.turn, self.back_at) = (0, None);
    }
}

fn rank(life: u64, place: u64) -> u64 {
    let mixed = (life.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_aggregator_is_preferred_by_its_part_of_the_hosts() {
        let preferred = (0..3000).map(|life| Choice::of(Incarnation(life), 3).preferred());
        let mut parts = [0_u32; 3];
        preferred.for_each(|place| parts[place] += 1);
        assert!(parts.iter().all(|part| (900..1100).contains(part)), "{parts:?}");
    }

    #[test]
    fn a_host_tries_all_and_goes_back_later() {
        let mut choice = Choice::of(Incarnation(7), 2);
        let preferred = choice.preferred();
        choice.attached(Duration::ZERO, || 0.5);
        assert_eq!(choice.back_at, None);
        choice.failed();
        assert_ne!(choice.place(), preferred);
        choice.attached(Duration::ZERO, || 0.5);
        assert_eq!(choice.back_at, Some(Duration::from_secs(45)));
        choice.go_back();
        assert_eq!(choice.place(), preferred);
    }
}
