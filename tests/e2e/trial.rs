//! `headworks trial`: what a limit in shadow would have done, as the controller saw it.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Figure, Fleet, FleetPlan, Process, Tally};

const BOTH: &str = "
limits:
  - {name: watched, match: {service: checkout}, per: [key], rate: 400/second, mode: shadow}
  - {name: enforced, match: {service: checkout}, rate: 300/second}
  - {name: idle, match: {service: nobody}, rate: 5/second}
  - {name: exactly, match: {service: nobody}, rate: 5/second, enforcement: exact}
";
const PATIENCE: Duration = Duration::from_secs(5);

fn text(fleet: &Fleet, args: &[&str]) -> String {
    let admin = fleet.controller.url("admin");
    let ended = Process::run([&["trial", "--admin", &admin], args].concat(), PATIENCE);
    assert!(ended.status.success(), "{}", ended.stderr);
    ended.stdout
}

fn json(fleet: &Fleet, limit: &str) -> Value {
    serde_json::from_str(&text(fleet, &[limit, "--json"])).unwrap()
}

#[track_caller]
fn reads_what_metrics_do(fleet: &Fleet, limit: &str, field: &str, metric: &str) {
    let trial = json(fleet, limit);
    let counted = |metric: &str| fleet.controller.scrape().of_limit(metric, limit);
    let figure = |name: &str| trial[name].as_f64().unwrap_or_else(|| panic!("no {name} in {trial:#}"));
    Figure::new("offered", figure("offered")).is_about(counted("headworks_offered_total"), 0.001);
    Figure::new(field, figure(field)).is_about(counted(metric), 0.001);
    Figure::new("part", figure("part_over"))
        .is_about(counted(metric) / counted("headworks_offered_total"), 0.002);
}

#[test]
fn a_limit_in_shadow_reads_what_its_metrics_do() {
    let fleet = FleetPlan::new(BOTH).start();
    Tally::sum(&fleet.load(&[150.0; 4], Duration::from_secs(15)).finish()).has_no_errors();
    // The last report, and the tick after it.
    sleep(Duration::from_secs(3));
    reads_what_metrics_do(&fleet, "watched", "would_drop", "headworks_would_drop_total");
    reads_what_metrics_do(&fleet, "enforced", "dropped", "headworks_dropped_total");
    let trial = json(&fleet, "watched");
    let figure = |name: &str| trial[name].as_f64().unwrap();
    Figure::new("offered", figure("offered")).is_about(9000.0, 0.03);
    Figure::new("part over", figure("part_over")).is_near(1.0 / 3.0, 0.06);
    Figure::new("median", figure("median_rate")).is_about(600.0, 0.2);
    Figure::new("peak", figure("peak_rate")).is_about(600.0, 0.2);
    assert_eq!(trial["hardest_hit"][0]["values"][0], "K", "{trial:#}");
    Figure::new("hit", trial["hardest_hit"][0]["over"].as_f64().unwrap())
        .is_about(figure("would_drop"), 0.001);
    assert!(
        !trial["worst_minutes"].as_array().unwrap().is_empty() && trial["changed"].is_null(),
        "{trial:#}"
    );

    let table = text(&fleet, &["watched"]);
    for part in
        ["watched  shadow 400/second", "known since", "would have been dropped", "█", "hit hardest", "  K "]
    {
        assert!(table.contains(part), "{part}\n{table}");
    }
    assert!(text(&fleet, &["enforced"]).contains("\ndropped  "));
    assert!(text(&fleet, &["idle"]).contains("no traffic in this time"));
    what_is_wrong_is_told(&fleet);
}

fn what_is_wrong_is_told(fleet: &Fleet) {
    let (here, agent) = (fleet.controller.url("admin"), fleet.agents[0].url("admin"));
    for (limit, admin, told) in [
        ("nobody/knows&it", &here, "no limit \"nobody/knows&it\" is in force"),
        ("exactly", &here, "exact limit"),
        ("watched", &agent, "a controller"),
    ] {
        let ended = Process::run(["trial", limit, "--admin", admin], PATIENCE);
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(told), "{told}\n{}", ended.stderr);
    }
}
