//! The status as a table for people.

use std::fmt::Write;

use super::model::{HeldView, LimitView, NodeStatus, Top};
use crate::legible;

/// Limits shown, of those for which others are held back.
const CAUSES: usize = 10;
/// Bucket values shown for one limit.
const TOP: usize = 3;
/// Characters shown of a value; values come from outside and may be anything.
const WIDEST_VALUE: usize = 40;
/// And bytes; more than fit into the column.
const LONGEST_VALUE: usize = 256;

/// The status as text. Control characters in names and values are escaped.
pub(super) fn render(status: &NodeStatus) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_head(&mut text, status);
    let _ = write_controllers(&mut text, status);
    let _ = write_nodes(&mut text, status);
    let _ = write_limits(&mut text, status);
    text
}

fn write_head(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    write!(text, "{} {}  plan {}", safe(&status.tier), safe(&status.node), safe(&status.state))?;
    if let Some(age) = status.plan_age_ms {
        write!(text, ", {age} ms old")?;
    }
    write!(text, "  limits generation {}", status.limits_generation)?;
    if let Some(digest) = &status.limits_digest {
        write!(text, ", {:.12}", safe(digest))?;
    }
    let learning = if status.learning { "  (learning what was in force before it started)" } else { "" };
    writeln!(text, "{learning}")?;
    if status.shadow_all {
        writeln!(text, "shadow-all is on: every limit counts what it would drop, nothing is dropped")?;
    }
    if let Some(held) = &status.limits_held {
        write_held(text, held)?;
    }
    if let Some(store) = &status.store {
        let state =
            if store.up { "answers" } else { "is away, and exact limits answer by their on_store_failure" };
        writeln!(text, "the store of exact limits {state}")?;
    }
    for (is_so, warning) in [
        (status.views_disagree, "controllers disagree: one hears more of the fleet than another"),
        (status.limits_disagree, "controllers disagree: they go by different limits"),
        (status.twins > 0, "children share their ids: give each node its own --id"),
    ] {
        if is_so {
            writeln!(text, "warning: {warning}")?;
        }
    }
    Ok(())
}

fn write_held(text: &mut String, held: &HeldView) -> std::fmt::Result {
    writeln!(
        text,
        "limits {:.12} are held back for {} s, until `headworks limits apply` confirms them:",
        safe(&held.digest),
        held.age_ms / 1000
    )?;
    for cause in held.causes.iter().take(CAUSES) {
        writeln!(text, "  {}", legible::cut(&cause.said, LONGEST_VALUE))?;
    }
    if held.causes.len() > CAUSES {
        writeln!(text, "  and {} limits more", held.causes.len() - CAUSES)?;
    }
    Ok(())
}

fn write_controllers(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    if !status.controllers.is_empty() {
        writeln!(
            text,
            "\n{:<40} {:<9} {:>11} {:>7} {:>12} {:>12}",
            "CONTROLLER", "LINK", "AGGREGATORS", "AGENTS", "DEMAND", "PLAN"
        )?;
    }
    for controller in &status.controllers {
        let link = match (controller.attached, controller.obeyed) {
            (true, true) => "obeyed",
            (true, false) => "attached",
            (false, _) => "away",
        };
        let plan = controller.plan_age_ms.map_or_else(|| "none".to_owned(), |age| format!("{age} ms old"));
        writeln!(
            text,
            "{:<40} {link:<9} {:>11} {:>7} {:>12} {plan:>12}",
            safe(&controller.address),
            controller.aggregators,
            controller.agents,
            format!("{:.1}/s", controller.demand)
        )?;
    }
    Ok(())
}

fn write_nodes(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    if !status.zones.is_empty() {
        writeln!(text, "\n{:<24} {:>11} {:>7}", "ZONE", "AGGREGATORS", "AGENTS")?;
    }
    for zone in &status.zones {
        writeln!(text, "{:<24} {:>11} {:>7}", safe(&zone.zone), zone.aggregators, zone.agents)?;
    }
    if !status.children.is_empty() {
        writeln!(
            text,
            "\n{:<32} {:<12} {:<16} {:>7} {:>8} {:>13}",
            "CHILD", "TIER", "ZONE", "AGENTS", "BUCKETS", "REPORTED"
        )?;
    }
    for child in &status.children {
        let (node, zone) = (safe(&child.node), safe(&child.zone));
        let (tier, agents, buckets, age) =
            (safe(&child.tier), child.agents, child.buckets, child.report_age_ms);
        writeln!(text, "{node:<32} {tier:<12} {zone:<16} {agents:>7} {buckets:>8} {age:>6} ms ago")?;
    }
    Ok(())
}

fn write_limits(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    let head = ["OFFERED", "ADMITTED", "DROPPED", "WOULD DROP"].map(|name| format!("{name:>11}")).concat();
    writeln!(text, "\n{:<28} {:<8}{:>14}{head} {:>7} {:>8}", "LIMIT", "MODE", "RATE", "RATIO", "BUCKETS")?;
    for limit in &status.limits {
        write_limit(text, limit)?;
    }
    if status.limits.is_empty() {
        writeln!(text, "no limits in force")?;
    }
    Ok(())
}

/// Where it counts, and what.
pub(crate) fn spelled_bucket(top: &Top) -> String {
    let place =
        safe(&top.scope.iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>().join("/"));
    let values = top.values.as_ref().map(|values| safe(&values.join(", ")));
    match values.as_deref() {
        _ if top.scope.is_empty() => values.unwrap_or_else(|| "(all others)".to_owned()),
        Some("") => format!("in {place}"),
        Some(values) => format!("in {place}: {values}"),
        None => format!("in {place}: (all others)"),
    }
}

fn write_limit(text: &mut String, limit: &LimitView) -> std::fmt::Result {
    let rate = spelled_rate(limit);
    let rates = [limit.offered, limit.admitted, limit.dropped, limit.would_drop]
        .map(|rate| format!("{:>11}", format!("{rate:.1}/s")));
    let (name, mode) = (safe(&limit.name), safe(&limit.mode));
    writeln!(
        text,
        "{name:<28} {mode:<8}{rate:>14}{} {:>7.3} {:>8}",
        rates.concat(),
        limit.ratio,
        limit.buckets
    )?;
    for top in
        limit.top.iter().take(TOP).filter(|top| {
            !top.scope.is_empty() || top.values.as_ref().is_none_or(|values| !values.is_empty())
        })
    {
        let values = spelled_bucket(top);
        writeln!(text, "  {values:<45}{:>15} {:>40.3}", format!("{:.1}/s", top.offered), top.ratio)?;
    }
    Ok(())
}

/// The rate in its own unit: by the second, 6 a minute would read as none. Earlier releases tell no unit.
pub(crate) fn spelled_rate(limit: &LimitView) -> String {
    match (limit.amount, &limit.unit) {
        (Some(amount), Some(unit)) => format!("{amount}/{}", safe(unit)),
        _ => limit.rate.map_or_else(|| "unlimited".to_owned(), |rate| format!("{rate:.0}/s")),
    }
}

/// A text from outside, safe for a terminal, and not wider than its column.
pub(crate) fn safe(text: &str) -> String {
    let legible = legible::cut(text, LONGEST_VALUE);
    let mut shown: String = legible.chars().take(WIDEST_VALUE).collect();
    if shown.len() < legible.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::model::{Controller, Top, Totals};
    use super::*;

    fn checkout() -> LimitView {
        LimitView {
            name: "checkout".to_owned(),
            rate: Some(400.0),
            amount: Some(400),
            unit: Some("second".to_owned()),
            mode: "enforce".to_owned(),
            exact: false,
            offered: 600.0,
            admitted: 400.0,
            dropped: 200.0,
            would_drop: 0.0,
            ratio: 1.0 / 3.0,
            buckets: 1,
            untracked: 0,
            tokens: None,
            load: None,
            top: Vec::new(),
            totals: Totals::default(),
        }
    }

    #[test]
    fn an_aggregator_shows_its_controllers_and_what_is_wrong_with_them() {
        let controller = |obeyed, attached| Controller {
            address: "http://10.0.0.1:7200".to_owned(),
            attached,
            obeyed,
            plan_age_ms: attached.then_some(120),
            aggregators: 2,
            agents: 30,
            demand: 600.0,
        };
        let controllers = vec![controller(true, true), controller(false, false)];
        let text = render(&NodeStatus { controllers, views_disagree: true, ..NodeStatus::default() });
        for part in
            ["warning: controllers disagree: one hears more", " obeyed ", " away ", "120 ms old", "none"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    fn rendered(limit: LimitView) -> String {
        render(&NodeStatus { limits: vec![limit], ..NodeStatus::default() })
    }

    #[test]
    fn a_rate_is_spelled_in_its_own_unit() {
        let per = |amount, unit: &str| LimitView {
            amount: Some(amount),
            unit: Some(unit.to_owned()),
            rate: Some(0.1),
            ..checkout()
        };
        assert!(rendered(per(6, "minute")).contains(" 6/minute "));
        assert!(rendered(per(1_000_000, "hour")).contains(" 1000000/hour "));
        assert!(
            rendered(LimitView { rate: None, amount: None, unit: None, ..checkout() }).contains("unlimited")
        );
    }

    #[test]
    fn a_node_that_tells_no_unit_has_its_rate_by_the_second() {
        let mut told = serde_json::to_value(checkout()).unwrap();
        told.as_object_mut()
            .unwrap()
            .retain(|field, _| !["amount", "unit", "tokens"].contains(&field.as_str()));
        assert!(rendered(serde_json::from_value(told).unwrap()).contains(" 400/s "));
    }

    #[test]
    fn columns_stand_below_their_heads() {
        let top = Top {
            scope: Vec::new(),
            values: Some(vec!["a".to_owned()]),
            offered: 1.0,
            ratio: 0.5,
            tokens: None,
        };
        let text = rendered(LimitView { top: vec![top], ..checkout() });
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let end = |line: usize, of: &str| lines[line].find(of).unwrap() + of.len();
        assert_eq!((end(2, "400/second"), end(2, "600.0/s")), (end(1, "RATE"), end(1, "OFFERED")), "{text}");
        assert_eq!((end(3, "1.0/s"), end(3, "0.500")), (end(1, "OFFERED"), end(1, "RATIO")), "{text}");
    }

    #[test]
    fn values_from_outside_cannot_move_the_cursor() {
        let values = Some(vec!["a\u{1b}]0;t\u{7}\n".to_owned()]);
        let top = Top { scope: Vec::new(), values, offered: 1.0, ratio: 0.5, tokens: None };
        let text = rendered(LimitView { top: vec![top], ..checkout() });
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
        assert!(text.contains("checkout") && text.contains("600.0/s") && text.contains("0.333"), "{text}");
    }
}
