//! One run: a fleet, a step in demand, and the figures of it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::args::SurgeArgs;
use super::configuration::Configuration;
use super::fleet::Fleet;
use super::folder::Folder;
use super::measure::{Figures, Wanted};
use super::tell;
use crate::failure::Failure;
use crate::load;

/// The key that all requests ask for; the limit does not look at it.
const KEY: &str = "bench";

/// Does one run, telling its phases on stderr. Dropped, it ends the fleet. A seed gives the same request times again.
pub(super) async fn run(
    args: &SurgeArgs,
    configuration: &Configuration,
    seed: u64,
    title: &str,
) -> Result<Figures, Failure> {
    let folder = Folder::new()?;
    tell(title, &format!("starting a fleet of {} agents in {}", args.agents, folder.path().display()));
    let mut fleet = Fleet::start(configuration, args.limit, args.agents, folder).await?;
    let wanted = wanted(args);
    let times = timetable(&wanted, seed);
    let (targets, start) = (fleet.targets(), Instant::now());
    let sampling = load::sample(&targets, KEY, times, start);
    let (samples, ()) = tokio::join!(sampling, tell_phases(&wanted, start, title));
    let samples = samples.map_err(|error| Failure::of(&error))?;
    fleet.lives()?;
    Ok(Figures::of(&samples, &wanted))
}

fn wanted(args: &SurgeArgs) -> Wanted {
    let (before, after) = args.wanted();
    Wanted { limit: f64::from(args.limit), before, after, warm_up: args.warm_up, surge: args.surge }
}

async fn tell_phases(wanted: &Wanted, start: Instant, title: &str) {
    let Wanted { before, after, warm_up, surge, .. } = wanted;
    tell(title, &format!("{before:.0}/s for {warm_up:?}"));
    sleep_until(start + *warm_up).await;
    tell(title, &format!("{after:.0}/s for {surge:?}"));
}

/// When requests are due: at random times, first at the one rate, then at the other.
fn timetable(wanted: &Wanted, seed: u64) -> Vec<Duration> {
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut times = draw(&mut chance, Duration::ZERO, wanted.warm_up, wanted.before);
    times.append(&mut draw(&mut chance, wanted.warm_up, wanted.surge, wanted.after));
    times
}

/// As many times as the rate gives in `length`, from `begin` on, in order: a Poisson process of which the number is
/// known. Requests of many independent users come like this; evenly spaced ones would spare the fleet the noise that
/// it has to see through, and a number left to chance would look like a generator that cannot keep up.
#[allow(clippy::cast_possible_truncation, reason = "the flags allow a few million")]
fn draw(chance: &mut fastrand::Rng, begin: Duration, length: Duration, rate: f64) -> Vec<Duration> {
    let number = (rate * length.as_secs_f64()).round() as u64;
    let mut times: Vec<_> = (0..number).map(|_| begin + length.mul_f64(chance.f64())).collect();
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        let (warm_up, surge) = (Duration::from_secs(8), Duration::from_secs(3));
        Wanted { limit: 4000.0, before: 3600.0, after: 16_000.0, warm_up, surge }
    }

    #[test]
    fn a_timetable_has_as_many_requests_as_the_rates_say() {
        let times = timetable(&wanted(), 1);
        let before = times.iter().filter(|time| **time < wanted().warm_up).count();
        assert_eq!((before, times.len() - before), (8 * 3600, 3 * 16_000));
        assert!(times.is_sorted() && times.last().is_some_and(|last| *last <= Duration::from_secs(11)));
    }

    #[test]
    fn tenths_of_a_second_differ_by_chance() {
        let times = timetable(&wanted(), 1);
        let tenths = (0..80).map(|tenth| {
            let begin = Duration::from_millis(tenth * 100);
            times.iter().filter(|time| (begin..begin + Duration::from_millis(100)).contains(*time)).count()
        });
        let tenths: Vec<_> = tenths.collect();
        let variance = tenths.iter().map(|count| (*count as f64 - 360.0).powi(2)).sum::<f64>() / 80.0;
        // That of a Poisson process is its mean; evenly spaced, it would be near 0.
        assert!((180.0..=540.0).contains(&variance), "{variance}: {tenths:?}");
    }

    #[test]
    fn a_seed_gives_the_same_timetable_again() {
        assert_eq!(timetable(&wanted(), 7), timetable(&wanted(), 7));
        assert_ne!(timetable(&wanted(), 7), timetable(&wanted(), 8));
    }
}
