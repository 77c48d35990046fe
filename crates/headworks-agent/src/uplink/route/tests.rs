use std::collections::BTreeMap;

use super::*;

fn candidates(count: u8) -> Vec<Candidate> {
    (1..=count)
        .map(|number| {
            let address = SocketAddr::from(([10, 0, 0, number], 7100));
            Candidate { url: format!("http://{address}"), address }
        })
        .collect()
}

fn at(seconds: f64) -> Moment {
    Moment::after(Duration::from_secs_f64(seconds))
}

fn route(count: u8, stay: Stay) -> Route {
    let mut route = Route::new(stay);
    route.know(candidates(count), true);
    route
}

/// Attached to this candidate at this time.
fn attached(route: &mut Route, index: usize, heard: bool, seconds: f64) {
    route.attached(candidates(4)[index].clone(), heard, at(seconds), [0.5, 0.5]);
}

fn due(route: &Route) -> Option<u64> {
    route.due().map(|due| due.since(Moment::default()).as_secs())
}

#[test]
fn each_failure_leads_to_the_next_candidate_and_a_longer_wait() {
    let mut route = route(3, Stay::default());
    let mut tried = Vec::new();
    let mut waits = Vec::new();
    for _ in 0..7 {
        tried.push(route.candidate().unwrap().address.ip().to_string());
        waits.push(route.failed(0.999).as_secs_f64().round());
    }
    let order = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    assert_eq!(tried, order.iter().cycle().take(7).copied().collect::<Vec<_>>());
    assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]);
}

#[test]
fn names_are_looked_up_again_in_each_round() {
    let mut route = route(2, Stay::default());
    let mut begins = Vec::new();
    for _ in 0..4 {
        begins.push(route.begins_a_round());
        route.failed(0.5);
    }
    assert_eq!(begins, [true, false, true, false]);
    route.know(Vec::new(), false);
    assert_eq!((route.candidate(), route.begins_a_round()), (None, true));
    route.failed(0.5);
    assert!(route.begins_a_round(), "nothing known: looked up each time");
}

#[test]
fn only_a_plan_and_five_seconds_make_the_next_wait_short_again() {
    let second_wait = |heard, lived| {
        let mut route = route(1, Stay::default());
        for _ in 0..5 {
            route.failed(0.5);
        }
        attached(&mut route, 0, false, 100.0);
        route.lost(heard, at(100.0 + lived), 0.999).as_secs_f64().round()
    };
    assert_eq!(second_wait(true, 5.0), 1.0);
    assert_eq!(second_wait(true, 4.9), 21.0);
    assert_eq!(second_wait(false, 60.0), 21.0);
}

#[test]
fn a_lost_parent_is_followed_by_the_next_one() {
    let mut route = route(3, Stay::default());
    attached(&mut route, 1, false, 0.0);
    route.lost(true, at(60.0), 0.5);
    assert_eq!(route.candidate(), Some(&candidates(3)[2]));
}

#[test]
fn a_second_choice_is_left_when_the_first_is_back() {
    let mut route = route(3, Stay { max_age: Duration::ZERO, ..Stay::default() });
    attached(&mut route, 1, false, 0.0);
    assert_eq!(due(&route), Some(60));
    assert_eq!(route.better(at(60.0)), candidates(1), "only those that are better");
    attached(&mut route, 0, true, 61.0);
    assert_eq!(due(&route), None);
}

#[test]
fn visits_become_rarer_while_they_fail() {
    let mut route = route(2, Stay { max_age: Duration::ZERO, ..Stay::default() });
    attached(&mut route, 1, false, 0.0);
    let waits: Vec<u64> = (0..5)
        .map(|_| {
            route.stayed(true, at(0.0), 0.5);
            due(&route).unwrap()
        })
        .collect();
    assert_eq!(waits, [120, 240, 360, 360, 360]);
}

#[test]
fn a_first_choice_that_accepts_and_closes_is_visited_less_and_less() {
    let mut route = route(2, Stay { max_age: Duration::ZERO, ..Stay::default() });
    let mut waits = Vec::new();
    for _ in 0..3 {
        attached(&mut route, 0, true, 0.0);
        route.lost(false, at(0.1), 0.5);
        attached(&mut route, 1, false, 0.0);
        waits.push(due(&route).unwrap());
    }
    assert_eq!(waits, [120, 240, 360]);
    attached(&mut route, 0, true, 0.0);
    route.lost(true, at(60.0), 0.5);
    attached(&mut route, 1, false, 0.0);
    assert_eq!(due(&route), Some(60), "it was good for a minute");
}

#[test]
fn where_a_name_is_missing_there_may_be_someone_better() {
    let mut route = route(1, Stay { max_age: Duration::ZERO, ..Stay::default() });
    route.know(candidates(1), false);
    attached(&mut route, 0, false, 0.0);
    assert_eq!(due(&route), Some(60));
    route.know(candidates(1), true);
    route.stayed(false, at(60.0), 0.5);
    assert_eq!(due(&route), None);
}

#[test]
fn an_old_stream_is_replaced_by_the_best_that_answers() {
    let stay = Stay { max_age: Duration::from_secs(100), ..Stay::default() };
    let mut route = route(2, stay);
    attached(&mut route, 0, false, 0.0);
    assert_eq!(due(&route), Some(100));
    assert_eq!(route.better(at(100.0)), candidates(2), "the present one too");
    route.know(candidates(4)[2..].to_vec(), true);
    assert_eq!(route.better(at(100.0)), candidates(4)[2..], "its name leads elsewhere by now");
    route.stayed(true, at(100.0), 0.5);
    assert!(due(&route).unwrap() >= 150, "nobody answered: not at once again");
}

#[test]
fn ages_differ_by_a_tenth() {
    let age = |random| {
        let mut route = route(1, Stay::default());
        route.attached(candidates(1)[0].clone(), false, at(0.0), [random, 0.5]);
        due(&route).unwrap()
    };
    assert_eq!((age(0.0), age(0.5), age(1.0)), (3240, 3600, 3960));
}

/// What a fleet does to its one parent, node by node: attempts that reach it, by second, and the waits between attempts.
struct Herd {
    arrivals: BTreeMap<u64, usize>,
    waits: Vec<f64>,
}

const FLEET: usize = 2000;

/// A parent that answers nobody up to a time, then closes every stream at once up to another, and is well from then on. All
/// nodes lose it at second 0, after a healthy time.
fn herd(back_at: f64, well_at: f64, end: f64, stay: Stay) -> Herd {
    let mut herd = Herd { arrivals: BTreeMap::new(), waits: Vec::new() };
    let mut chance = Chance(7);
    for _ in 0..FLEET {
        let mut route = route(1, stay);
        let start = 1000.0;
        route.attached(candidates(1)[0].clone(), false, at(0.0), [chance.draw(), chance.draw()]);
        let mut now = start + route.lost(true, at(start), chance.draw()).as_secs_f64();
        while now < start + end {
            if now >= start + back_at {
                let second = Duration::from_secs_f64(now - start).as_secs();
                *herd.arrivals.entry(second).or_default() += 1;
            }
            if now >= start + well_at {
                route.attached(candidates(1)[0].clone(), true, at(now), [chance.draw(), chance.draw()]);
                now = route.due().map_or(f64::MAX, |due| due.since(Moment::default()).as_secs_f64());
                continue;
            }
            let wait = if now >= start + back_at {
                route.attached(candidates(1)[0].clone(), false, at(now), [chance.draw(), chance.draw()]);
                route.lost(false, at(now), chance.draw())
            } else {
                route.failed(chance.draw())
            };
            herd.waits.push(wait.as_secs_f64());
            now += wait.as_secs_f64();
        }
    }
    herd
}

/// Numbers that look like chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 33).unwrap()) / f64::from(1_u32 << 31)
    }
}

impl Herd {
    fn busiest(&self) -> usize {
        self.arrivals.values().copied().max().unwrap_or_default()
    }

    fn arrived(&self) -> usize {
        self.arrivals.values().sum()
    }

    /// Standard deviation of the waits over their mean.
    fn spread(&self) -> f64 {
        let count = self.waits.len() as f64;
        let mean = self.waits.iter().sum::<f64>() / count;
        let variance = self.waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / count;
        variance.sqrt() / mean
    }
}

#[test]
fn a_fleet_returns_to_a_parent_that_was_away_for_half_a_minute_over_several_seconds() {
    let herd = herd(30.0, 30.0, 60.0, Stay { max_age: Duration::ZERO, ..Stay::default() });
    assert_eq!(herd.arrived(), FLEET, "all are back within two caps, each once");
    assert!(herd.arrivals.keys().all(|second| *second <= 40), "{:?}", herd.arrivals);
    assert!(herd.busiest() <= FLEET / 5, "{:?}", herd.arrivals);
    assert!(herd.spread() >= 0.25, "{}", herd.spread());
}

#[test]
fn a_parent_that_accepts_and_closes_for_a_minute_is_not_stormed() {
    let herd = herd(30.0, 90.0, 120.0, Stay { max_age: Duration::ZERO, ..Stay::default() });
    assert!(herd.busiest() <= FLEET / 5, "{:?}", herd.arrivals);
    let in_the_minute: usize = herd.arrivals.range(30..90).map(|(_, count)| count).sum();
    assert!(in_the_minute < FLEET * 8, "{} attempts a node", in_the_minute / FLEET);
    assert!(herd.spread() >= 0.25, "{}", herd.spread());
}

#[test]
fn streams_that_began_together_do_not_end_together() {
    let stay = Stay { max_age: Duration::from_secs(600), ..Stay::default() };
    let herd = herd(0.0, 0.0, 3000.0, stay);
    let after_the_first: usize = herd.arrivals.range(2..).map(|(_, count)| *count).max().unwrap_or_default();
    assert!(after_the_first <= FLEET / 20, "{after_the_first} in one second");
    let each = herd.arrived() / FLEET;
    assert!((4..=6).contains(&each), "{each} streams a node in 3000 s");
}

#[test]
fn a_parent_is_dialled_over_tls_however_its_url_is_spelled() {
    let at = |url: &str| Candidate { url: url.to_owned(), address: "10.0.0.1:7100".parse().unwrap() };
    for (url, label) in [
        ("https://agg:7100", "https://10.0.0.1:7100"),
        ("HTTPS://agg:7100", "https://10.0.0.1:7100"),
        ("HttpS://agg:7100", "https://10.0.0.1:7100"),
        ("HTTP://agg:7100", "http://10.0.0.1:7100"),
    ] {
        assert_eq!(
            (at(url).is_secure(), at(url).label()),
            (label.starts_with("https"), label.to_owned()),
            "{url}"
        );
    }
}
