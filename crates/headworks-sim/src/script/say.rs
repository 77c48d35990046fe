//! Events, as scripts write them.

use std::time::Duration;

use super::{Event, Link, Stream, Way, Who};

/// The line that makes this happen.
pub(super) fn line(time: Duration, event: &Event, streams: &[Stream]) -> String {
    format!("at {} {}\n", self::time(time), words(event, streams))
}

fn words(event: &Event, streams: &[Stream]) -> String {
    match event {
        Event::Offer { stream, rate } => {
            let name = streams.get(*stream).map_or("all", |stream| &stream.name);
            format!("offer {name} {rate}")
        }
        Event::Kill(node) => format!("kill {}", who(node)),
        Event::Start(node) => format!("start {}", who(node)),
        Event::Drain(hosts) => format!("drain hosts {}..{}", hosts.start, hosts.end),
        Event::Restore(hosts) => format!("restore hosts {}..{}", hosts.start, hosts.end),
        Event::Weight(hosts, weight) => format!("weight hosts {}..{} {weight}", hosts.start, hosts.end),
        Event::Pause(node, lasts) => format!("pause {} for {}", who(node), time(*lasts)),
        Event::Cut(between, Way::Both) => format!("cut {}", link(between)),
        Event::Cut(between, Way::Up) => format!("cut {} upwards", link(between)),
        Event::Cut(between, Way::Down) => format!("cut {} downwards", link(between)),
        Event::Slow(between, (least, most)) => {
            format!("slow {} by {}..{}", link(between), time(*least), time(*most))
        }
        Event::Heal(between) => format!("heal {}", link(between)),
        Event::Clock(node, seconds) => format!("clock {} {seconds}", who(node)),
        Event::Delay(least, most) => format!("delay {}..{}", time(*least), time(*most)),
        Event::Loss(part) => format!("loss {}%", percent(*part)),
        Event::Repeat(part) => format!("repeat {}%", percent(*part)),
        Event::Replace => "replace a host".to_owned(),
    }
}

fn who(who: &Who) -> String {
    match who {
        Who::Hosts(hosts) => format!("hosts {}..{}", hosts.start, hosts.end),
        Who::Zone(zone) => format!("zone {zone}"),
        Who::Aggregator { zone, place } => format!("aggregator {zone}.{place}"),
        Who::Controller(controller) => format!("controller {controller}"),
    }
}

fn link(link: &Link) -> String {
    match &link.from {
        Some(parent) => format!("{} from {}", who(&link.of), who(parent)),
        None => who(&link.of),
    }
}

fn percent(part: f64) -> f64 {
    (part * 1e6).round() / 1e4
}

/// Whole milliseconds without a trace of binary fractions.
fn time(time: Duration) -> String {
    if time.subsec_nanos().is_multiple_of(1_000_000) {
        format!("{}ms", time.as_millis())
    } else {
        format!("{}ms", time.as_secs_f64() * 1000.0)
    }
}
