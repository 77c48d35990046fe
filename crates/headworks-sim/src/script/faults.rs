//! Random faults: a schedule drawn from the seed, of which every fault is over before its end.

use std::time::Duration;

use super::{Event, Link, Script, Span, Way, Who};
use crate::chance::Chance;

/// `from 20s to 1h random faults every 2s..20s at most 3`
#[derive(Clone, Copy, Debug)]
pub(super) struct Random {
    pub(super) span: Span,
    /// The least and the most time from one fault to the next.
    pub(super) every: (Duration, Duration),
    /// Faults at once.
    pub(super) at_most: usize,
}

/// The shortest and the longest fault: from what nobody notices to what keepalives find, yet shorter than the hold and than
/// the time for which parents remember those who left.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(40);
/// By how many seconds the clock of a parent jumps at most: by more than two minutes, and it forgets those who left a
/// moment ago, as it should, and what they counted until they are back is lost.
const FURTHEST_OF_PARENTS: usize = 60;
/// Makes this chance another one than the world's of the same seed.
const SALT: u64 = 0x6368_616f_7300;
/// Attempts to find a fault that does not touch what is broken already.
const ATTEMPTS: usize = 10;

/// What is broken, so that nothing is broken twice.
#[derive(Clone, Debug, PartialEq)]
enum Target {
    Node(Who),
    Loss,
    Delay,
    Repeat,
}

/// A fault and how it ends, if it does not end by itself.
struct Fault {
    target: Target,
    begins: Event,
    ends: Option<Event>,
}

/// The faults of a run, in pairs of beginning and end.
pub(super) fn draw(script: &Script, random: &Random) -> Result<Vec<(Duration, Event)>, String> {
    if random.every.1.is_zero() {
        return Err("no time between faults: write `every 2s..20s`".to_owned());
    }
    let mut chance = Chance::seeded(script.seed ^ SALT);
    let mut broken: Vec<(Duration, Target)> = Vec::new();
    let mut events = Vec::new();
    let mut time = random.span.from;
    while time + SHORTEST < random.span.to {
        broken.retain(|(until, _)| *until > time);
        let until = time + length(&mut chance).min(random.span.to.saturating_sub(time));
        let fault = unbroken(script, &broken, until.saturating_sub(time), &mut chance);
        if let Some(fault) = fault.filter(|_| broken.len() < random.at_most) {
            events.push((time, fault.begins));
            events.extend(fault.ends.map(|ends| (until, ends)));
            broken.push((until, fault.target));
        }
        time += millis(between(random.every, chance.unit())).max(Duration::from_millis(1));
    }
    events.sort_by_key(|(time, _)| *time);
    Ok(events)
}

/// All aggregators of a script, zone after zone.
pub(super) fn aggregators(script: &Script) -> Vec<Who> {
    let places = |zone| (0..script.aggregators).map(move |place| Who::Aggregator { zone, place });
    (0..script.zones.len()).flat_map(places).collect()
}

fn unbroken(
    script: &Script,
    broken: &[(Duration, Target)],
    lasts: Duration,
    chance: &mut Chance,
) -> Option<Fault> {
    let draws = (0..ATTEMPTS).map(|_| fault(script, lasts, chance));
    draws.into_iter().find(|fault| broken.iter().all(|(_, target)| *target != fault.target))
}

/// Short ones are as frequent as long ones, by the order of magnitude.
fn length(chance: &mut Chance) -> Duration {
    let orders = (LONGEST.as_secs_f64() / SHORTEST.as_secs_f64()).ln();
    millis(SHORTEST.mul_f64((orders * chance.unit()).exp()))
}

fn between((least, most): (Duration, Duration), part: f64) -> Duration {
    least + most.saturating_sub(least).mul_f64(part)
}

/// Whole milliseconds: what is printed is what happens.
fn millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn fault(script: &Script, lasts: Duration, chance: &mut Chance) -> Fault {
    match below(12, chance) {
        0 => setting(Target::Loss, Event::Loss(hundredths(30, chance)), Event::Loss(script.loss)),
        1 => setting(Target::Repeat, Event::Repeat(hundredths(50, chance)), Event::Repeat(script.repeats)),
        2 => {
            let slowest = Duration::from_millis(below(400, chance) as u64 + 10);
            let (least, most) = script.delay;
            setting(Target::Delay, Event::Delay(least, slowest.max(most)), Event::Delay(least, most))
        }
        3 => {
            let node = node(script, chance);
            let furthest = if matches!(node, Who::Hosts(_)) { 3600 } else { FURTHEST_OF_PARENTS };
            let jump = i64::try_from(below(furthest, chance)).unwrap_or(0) + 1;
            Fault { target: Target::Node(node.clone()), begins: Event::Clock(node, jump), ends: None }
        }
        4 | 5 => {
            let node = node(script, chance);
            let target = Target::Node(node.clone());
            Fault { target, begins: Event::Pause(node, lasts), ends: None }
        }
        6..=8 => {
            let node = node(script, chance);
            let (begins, ends) = (Event::Kill(node.clone()), Event::Start(node.clone()));
            Fault { target: Target::Node(node), begins, ends: Some(ends) }
        }
        _ => broken_link(script, chance),
    }
}

fn setting(target: Target, begins: Event, ends: Event) -> Fault {
    Fault { target, begins, ends: Some(ends) }
}

fn broken_link(script: &Script, chance: &mut Chance) -> Fault {
    let node = node(script, chance);
    let above = matches!(node, Who::Aggregator { .. }) && chance.unit() < 0.5;
    let from = above.then(|| Who::Controller(below(script.controllers, chance)));
    let link = Link { of: node.clone(), from };
    let begins = match below(5, chance) {
        0 => Event::Cut(link.clone(), Way::Up),
        1 => Event::Cut(link.clone(), Way::Down),
        2 => {
            let slow = Duration::from_millis(below(900, chance) as u64 + 100);
            Event::Slow(link.clone(), (slow / 2, slow))
        }
        _ => Event::Cut(link.clone(), Way::Both),
    };
    Fault { target: Target::Node(node), begins, ends: Some(Event::Heal(link)) }
}

/// A node of each tier as often as of the others: what breaks least often would be tried least.
fn node(script: &Script, chance: &mut Chance) -> Who {
    match below(3, chance) {
        0 => {
            let host = below(script.zones.iter().sum(), chance);
            Who::Hosts(host..host + 1)
        }
        1 => Who::Aggregator {
            zone: below(script.zones.len(), chance),
            place: below(script.aggregators, chance),
        },
        _ => Who::Controller(below(script.controllers, chance)),
    }
}

fn hundredths(most: usize, chance: &mut Chance) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "at most a hundred")]
    let percent = (below(most, chance) + 1) as f64;
    percent / 100.0
}

fn below(bound: usize, chance: &mut Chance) -> usize {
    let word = u64::from(chance.word());
    usize::try_from((word * bound as u64) >> 32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::{parse, parse_with_seed};
    use super::*;

    const CHAOS: &str = "\
zones 3 x 4 aggregators 2
controllers 2
run 10m
from 10s to 9m random faults every 500ms..5s at most 3
";

    #[test]
    fn what_is_printed_does_the_same_in_place_of_what_drew_it() {
        let drawn = parse(CHAOS).unwrap();
        let written =
            CHAOS.replace("from 10s to 9m random faults every 500ms..5s at most 3\n", &drawn.faults());
        assert_eq!(parse(&written).unwrap().events, drawn.events);
        assert!(drawn.events.len() > 100, "{}", drawn.faults());
    }

    #[test]
    fn another_seed_gives_other_faults() {
        let with = |seed| parse_with_seed(CHAOS, Some(seed)).unwrap().faults();
        assert_eq!(with(7), with(7));
        assert_ne!(with(7), with(8));
    }

    #[test]
    fn all_is_whole_again_at_the_end_and_never_is_more_broken_than_said() {
        let events = parse(CHAOS).unwrap().events;
        let end = Duration::from_secs(540);
        assert!(events.iter().all(|(time, _)| *time <= end));
        let mut open: i32 = 0;
        for (_, event) in &events {
            open += match event {
                Event::Kill(_) | Event::Cut(..) | Event::Slow(..) => 1,
                Event::Start(_) | Event::Heal(_) => -1,
                _ => 0,
            };
            assert!((0..=3).contains(&open), "{open}");
        }
        assert_eq!(open, 0);
        let over = |(time, event): &(Duration, Event)| match event {
            Event::Pause(_, lasts) => *time + *lasts <= end,
            _ => true,
        };
        assert!(events.iter().all(over));
    }
}
