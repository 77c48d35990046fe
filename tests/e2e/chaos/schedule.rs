//! What breaks, when, and for how long: drawn from a seed, and so the same for the same seed and length.

use std::fmt;
use std::time::Duration;

/// Most faults at a time.
const MOST: usize = 3;
/// From one fault to the next, and how long one lasts, in milliseconds.
const GAPS: std::ops::Range<u64> = 300..2000;
const LENGTHS: std::ops::Range<u64> = 500..7000;

/// Where a fault happens, by places in the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Of the controllers the second: the first one keeps the books.
    Controller,
    Aggregator(usize),
    Agent(usize),
    /// A link from an aggregator to a controller.
    Above(usize, usize),
    /// A link from an agent to an aggregator, by the agent's list.
    Below(usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Killed,
    Terminated,
    Suspended,
    Cut,
    BlackHole,
    /// Nothing arrives at the parent.
    OneWayUp,
    /// Nothing arrives at the child.
    OneWayDown,
    Unread,
    Slow,
}

const OF_NODES: [Kind; 3] = [Kind::Killed, Kind::Terminated, Kind::Suspended];
const OF_LINKS: [Kind; 6] =
    [Kind::Cut, Kind::BlackHole, Kind::OneWayUp, Kind::OneWayDown, Kind::Unread, Kind::Slow];

/// One fault, by the time since the load began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) begins: Duration,
    pub(super) ends: Duration,
    pub(super) place: Place,
    pub(super) kind: Kind,
}

/// What the schedule may break.
pub(super) struct Targets {
    pub(super) nodes: Vec<Place>,
    pub(super) links: Vec<Place>,
}

/// All faults from one time to another, in the order in which they begin.
pub(super) fn draw(seed: u64, targets: &Targets, from: Duration, to: Duration) -> Vec<Fault> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut faults, mut now): (Vec<Fault>, Duration) = (Vec::new(), from);
    loop {
        now += Duration::from_millis(random.u64(GAPS));
        let ends = now + Duration::from_millis(random.u64(LENGTHS));
        let (places, kinds) =
            if random.bool() { (&targets.nodes, &OF_NODES[..]) } else { (&targets.links, &OF_LINKS[..]) };
        let (place, kind) = (places[random.usize(..places.len())], kinds[random.usize(..kinds.len())]);
        if ends >= to {
            return faults;
        }
        let mut open = faults.iter().filter(|fault| fault.ends + Duration::from_secs(1) > now);
        if open.clone().count() < MOST && !open.any(|fault| fault.place == place) {
            faults.push(Fault { begins: now, ends, place, kind });
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begins, ends, place, kind } = self;
        write!(f, "{:7.2}s to {:7.2}s {place:?} {kind:?}", begins.as_secs_f64(), ends.as_secs_f64())
    }
}

#[test]
fn the_same_seed_draws_the_same_faults_and_never_too_many_at_a_time() {
    let targets = || Targets { nodes: (0..4).map(Place::Agent).collect(), links: vec![Place::Above(0, 0)] };
    let draw = |seed| draw(seed, &targets(), Duration::ZERO, Duration::from_secs(600));
    let told = |faults: &[Fault]| faults.iter().map(|fault| format!("{fault}\n")).collect::<String>();
    let faults = draw(7);
    assert_eq!(told(&faults), told(&draw(7)));
    assert_ne!(told(&faults), told(&draw(8)));
    assert!(faults.len() > 100, "{} in ten minutes", faults.len());
    for fault in &faults {
        let at_a_time = faults.iter().filter(|f| f.begins <= fault.begins && f.ends > fault.begins).count();
        assert!(at_a_time <= MOST, "{at_a_time} at {fault}");
    }
}
