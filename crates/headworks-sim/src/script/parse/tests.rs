use super::*;
use crate::script::{Expectation, Link, Way};

/// Line 7 is the one that tests put something in.
const AROUND: &str =
    "# a title\nzones 2 x 5\nrun 60s\nstream a key=1\nlimits:\n  - {name: api, rate: 10/second}\n";

fn error(line: &str) -> ScriptError {
    parse(&format!("{AROUND}{line}\n# the end\n")).expect_err(line)
}

fn is_told((line, message): &(&str, &str)) {
    let error = error(line);
    assert_eq!(error.line, 7, "{line}: {error}");
    assert!(error.message.contains(message), "{line}: {error}");
    assert!(error.to_string().starts_with("line 7: "), "{error}");
}

#[test]
fn bad_lines_are_told_with_their_number_and_with_what_to_write() {
    let bad = [
        ("seed x", "`x` is no number that fits here: write one like 3"),
        ("step 0s", "write 50ms or more"),
        ("zones", "write `zones 50 50`"),
        ("zones 2 x 9000000", "write one from 1 to 1000000"),
        ("zones 600000 600000", "at most 1000000 in all"),
        ("controllers 0", "write one from 1 to 16"),
        ("limits:", "`limits:` is at line 5 already"),
        ("stream b key", "`key` is no attribute: write key=value"),
        ("stream a key=2", "give it another name"),
        ("arrivals seldom", "`arrivals seldom` makes no sense: see `headworks simulate --language`"),
        ("arrivals batches 0", "write one of at least 1"),
        ("zipf -1", "write one of at least 0"),
        ("retry 90 after 1s at most 3", "`90` is no part: write 20%"),
        ("delay 3ms..1ms", "write 1ms..3ms"),
        ("loss 101%", "from 0% to 100%"),
        ("repeat NaN%", "from 0% to 100%"),
        ("hold 60", "`60` is no duration: write 50ms, 1.5s, 10m or 2h"),
        ("hold -1s", "`-1s` is no duration"),
        ("hold 1000000h", "write at most 100000h"),
        ("run 0s", "write 50ms or more"),
        ("run 60h", "write a longer `step`"),
        ("at 1s offer many", "`many` is no number that fits here"),
        ("at 1s offer NaN", "write one of at least 0"),
        ("at 1s offer b 5", "no stream b: write `stream b key=value` before"),
        ("at 1s kill everybody", "write `hosts 0..5`, `zone 1`, `aggregator 1.0` or `controller 0`"),
        ("at 1s kill hosts 5", "`5` is no range: write 0..5"),
        ("at 1s drain hosts 5..3", "the first five are 0..5"),
        ("at 1s restore hosts 5..11", "all of them are 0..10"),
        ("at 1s weight hosts 0..5 -2", "write one of at least 0"),
        ("at 1s start zone 2", "the last one is zone 1"),
        ("at 1s cut controller 1", "the last one is controller 0"),
        ("at 1s pause hosts 0..11 for 1s", "all of them are 0..10"),
        ("at 1s clock hosts 0..5 86400", "write at most 43200"),
        ("at 1s explode", "`explode` is nothing that can happen: see"),
        ("at 61s offer 5", "the run is over before 61s: write a longer `run`"),
        ("from 2s to 1s ramp 1 to 2", "2s is not before 1s: swap them"),
        ("from 1s to 2s square 1 2 every 1ms", "write a longer one"),
        ("from 0s to 50000h replace a host every 10ms", "more than 1000000 events"),
        ("from 1s to 2s explode", "nothing that goes on for a while: see"),
        ("measure held api", "write `measure WHAT [OF] from TIME to TIME"),
        ("measure held api hosts 0..5 from 1s to 2s", "write `measure WHAT [OF] from TIME to TIME"),
        ("measure joy api from 1s to 2s", "write surge, held, dropped"),
        ("measure held app from 1s to 2s", "no limit `app`: there are api"),
        ("measure stream b from 1s to 2s", "no stream `b`: there are a"),
        ("measure reports api from 1s to 2s", "leave `api` out"),
        ("measure held api from 1s to 61s", "write a longer `run`, or end sooner"),
        ("measure dropped api hosts 5..11 from 1s to 2s", "all of them are 0..10"),
        ("measure held api from 1s to 2s expect", "write `mean >= 0.98, mean <= 1.02`"),
        ("measure held api from 1s to 2s expect mean = 1", "write `mean >= 0.98, mean <= 1.02`"),
        ("measure held api from 1s to 2s expect mean <= one", "`one` is no number"),
        ("chart app from 1s to 2s", "no limit `app`: there are api"),
        ("chart api from 1s to 61s", "end sooner"),
        ("  - {name: other, rate: 10/fortnight}", "in the limits: 7:25: limits[1].rate:"),
    ];
    bad.iter().for_each(is_told);
}

#[test]
fn bad_lines_about_many_parents_and_drawn_faults_are_told_too() {
    let bad = [
        ("at 1s kill aggregator 0", "the first one of zone 1 is 1.0"),
        ("at 1s kill aggregator 0.1", "write `zones 2 x 20 aggregators 2`"),
        ("at 1s kill aggregator 2.0", "the last one is zone 1"),
        ("at 1s cut controller 0 from zone 1", "write a child `from` its parent"),
        ("at 1s cut hosts 0..1 from controller 0", "write a child `from` its parent"),
        ("zones 2 x 5 aggregators 0", "write one from 1 to 16"),
        ("from 1s to 2s random faults every 1s at most 0", "write one from 1 to 100"),
        ("from 1s to 2s random faults every 0s at most 1", "write `every 2s..20s`"),
        ("from 1s to 2s restart hosts 0..9 for 1s every 1s", "write a later end"),
        ("measure counts api from 1s to 2s", "write from 0s to 60s"),
        ("measure kept api from 1s to 2s", "leave `api` out"),
    ];
    bad.iter().for_each(is_told);
}

#[test]
fn what_is_missing_is_told_at_the_end_of_the_script() {
    let missing = [
        ("", 1, "write `zones 50 50`"),
        ("zones 5 5\n", 1, "write `run 30s`"),
        ("zones 5 5\nrun 5s\nmeasure held api from 0s to 1s\n", 3, "write one below `limits:`"),
        ("zones 5 5\nat 1s offer 5\nrun 5s\nstep 20ms\n", 4, "before anything that happens"),
    ];
    for (text, line, message) in missing {
        let error = parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

#[test]
fn comments_among_the_limits_do_not_move_the_lines_of_their_faults() {
    let text =
        "zones 5 5\nlimits:\n  - {name: api, rate: 10/second}\n# more\n  - {name: b, rate: x}\nrun 5s\n";
    assert_eq!(parse(text).expect_err(text).line, 5);
}

const FULL: &str = "\
# Everything there is
# and more
seed 7
step 20ms
zones 3 4
controllers 2
arrivals batches 4
zipf 0.5
retry 90% after 1s at most 3
delay 2ms..4ms
loss 10%
repeat 5%
spacing 100ms
pushes off
hold 30s
stream a key=1 other=2
stream b
limits:
  - {name: api, rate: 10/second}
  - {name: each, per: [key], rate: 60/minute}
at 2s offer 5
at 1s offer b 7.5
at 3s kill hosts 0..2
at 4s start zone 1
at 5s drain hosts 2..4
at 6s restore hosts 2..4
at 7s weight hosts 0..7 2.5
at 8s pause controller 1 for 1m
at 9s cut zone 0
at 10s heal zone 0
at 11s clock hosts 0..1 -60
at 12s delay 1s
at 13s loss 0%
at 14s repeat 100%
from 20s to 21s ramp 1 to 2
from 22s to 24s square 1 2 every 2s
from 25s to 26s batch 5 every 1s
from 27s to 28s replace a host every 1s
from 29s to 33s kill controller 0 for 1s every 2s
from 35s to 37s clock hosts 0..1 5 and -5 every 1s
run 1m
chart api from 10s to 20s
measure surge api from 1s to 2s
measure held api from 1s to 2s expect mean >= 0.98, mean <= 1.02
measure dropped each hosts 3..5 from 1s to 2s
measure ratio api from 1s to 2s
measure estimate api from 1s to 2s
measure counted api from 1s to 2s
measure stream b from 1s to 2s
measure reports from 1s to 2s
measure agents from 1s to 2s
measure attaching from 1s to 2s
";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_full_script_is_read_as_it_is_written() {
    let script = parse(FULL).unwrap();
    assert_eq!(script.title, "Everything there is");
    assert_eq!((script.seed, script.step, script.length), (7, Duration::from_millis(20), seconds(60)));
    assert_eq!((script.zones.as_slice(), script.controllers), ([3, 4].as_slice(), 2));
    assert_eq!((script.arrivals, script.zipf), (Arrivals::Batches(4.0), 0.5));
    assert_eq!((script.loss, script.repeats, script.pushes), (0.1, 0.05, false));
    assert_eq!((script.spacing, script.hold), (Duration::from_millis(100), seconds(30)));
    assert_eq!(script.delay, (Duration::from_millis(2), Duration::from_millis(4)));
    let retries = script.retries.unwrap();
    assert_eq!((retries.part, retries.after, retries.at_most), (0.9, seconds(1), 3));
    assert_eq!(script.streams[0].attributes[1], ("other".to_owned(), "2".to_owned()));
    assert_eq!(script.limits.limits().len(), 2);
    assert_eq!(script.chart, Some(("api".to_owned(), Span { from: seconds(10), to: seconds(20) })));
}

fn all_of_zone_0() -> Link {
    Link { of: Who::Zone(0), from: None }
}

#[test]
fn what_happens_is_in_order_of_time() {
    let script = parse(FULL).unwrap();
    assert!(script.events.is_sorted_by_key(|(time, _)| *time));
    let wanted = [
        (1, Event::Offer { stream: 1, rate: 7.5 }),
        (2, Event::Offer { stream: 0, rate: 5.0 }),
        (3, Event::Kill(Who::Hosts(0..2))),
        (4, Event::Start(Who::Zone(1))),
        (5, Event::Drain(2..4)),
        (6, Event::Restore(2..4)),
        (7, Event::Weight(0..7, 2.5)),
        (8, Event::Pause(Who::Controller(1), seconds(60))),
        (9, Event::Cut(all_of_zone_0(), Way::Both)),
        (10, Event::Heal(all_of_zone_0())),
        (11, Event::Clock(Who::Hosts(0..1), -60)),
        (12, Event::Delay(seconds(1), seconds(1))),
        (13, Event::Loss(0.0)),
        (14, Event::Repeat(1.0)),
    ];
    for ((time, event), (at, wanted)) in script.events.iter().zip(wanted) {
        assert_eq!((time, event), (&seconds(at), &wanted));
    }
    let between = |from, to| -> Vec<(Duration, Event)> {
        let inside = script.events.iter().filter(|(time, _)| (seconds(from)..seconds(to)).contains(time));
        inside.cloned().collect()
    };
    assert_eq!(between(22, 25).len(), 2);
    assert_eq!(between(27, 29), [(seconds(27), Event::Replace)]);
    let (kill, start) = (Event::Kill(Who::Controller(0)), Event::Start(Who::Controller(0)));
    let restarts = [(29, kill.clone()), (30, start.clone()), (31, kill), (32, start)];
    assert_eq!(between(29, 34), restarts.map(|(time, event)| (seconds(time), event)));
    assert_eq!(
        between(35, 38),
        [(35, 5), (36, -5)].map(|(time, by)| (seconds(time), Event::Clock(Who::Hosts(0..1), by)))
    );
}

#[test]
fn measures_say_what_they_are_of() {
    let script = parse(FULL).unwrap();
    let of: Vec<&str> = script.measures.iter().map(|measure| measure.of.as_str()).collect();
    assert_eq!(of, ["api", "api", "each hosts 3..5", "api", "api", "api, counted", "b", "", "", ""]);
    let Expectation { figure, at_most, bound } = &script.measures[1].expected[1];
    assert_eq!((figure.as_str(), *at_most, *bound), ("mean", true, 1.02));
    assert_eq!(script.measures[2].hosts, Some(3..5));
    assert!(script.measures[5].counted && !script.measures[4].counted);
}

#[test]
fn the_reference_ends_with_a_script() {
    let (_, example) = crate::LANGUAGE.split_once("An example\n").unwrap();
    let example: Vec<&str> = example.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    parse(&example.join("\n")).unwrap();
}

#[test]
fn links_have_ends_and_ways() {
    let text = "zones 2 x 5 aggregators 2\ncontrollers 2\nrun 9s\nat 1s cut zone 0 from controller 1\n\
                at 2s cut hosts 0..2 from aggregator 0.1 upwards\nat 3s slow aggregator 1.0 by 100ms..300ms\n";
    let events: Vec<Event> = parse(text).unwrap().events.into_iter().map(|(_, event)| event).collect();
    let first = Who::Aggregator { zone: 0, place: 1 };
    let slow = Link { of: Who::Aggregator { zone: 1, place: 0 }, from: None };
    let wanted = [
        Event::Cut(Link { of: Who::Zone(0), from: Some(Who::Controller(1)) }, Way::Both),
        Event::Cut(Link { of: Who::Hosts(0..2), from: Some(first) }, Way::Up),
        Event::Slow(slow, (Duration::from_millis(100), Duration::from_millis(300))),
    ];
    assert_eq!(events, wanted);
}

#[test]
fn releases_restart_one_node_after_the_other() {
    let text = "zones 1 x 2 aggregators 2\nrun 20s\nfrom 1s to 9s restart aggregators for 1s every 2s\n";
    let times: Vec<u64> = parse(text).unwrap().events.iter().map(|(time, _)| time.as_secs()).collect();
    assert_eq!(times, [1, 2, 3, 4]);
}
