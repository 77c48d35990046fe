//! The status as a table for people.

use std::fmt::Write;

use super::model::{LimitView, NodeStatus};

/// Bucket values shown for one limit.
const TOP: usize = 3;
/// Characters shown of a value; values come from outside and may be anything.
const WIDEST_VALUE: usize = 40;

/// The status as text. Control characters in names and values are escaped.
pub(super) fn render(status: &NodeStatus) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_head(&mut text, status);
    let _ = write_nodes(&mut text, status);
    let _ = write_limits(&mut text, status);
    text
}

fn write_head(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    write!(text, "{} {}  plan {}", status.tier, safe(&status.node), status.state)?;
    if let Some(age) = status.plan_age_ms {
        write!(text, ", {age} ms old")?;
    }
    write!(text, "  limits generation {}", status.limits_generation)?;
    if let Some(digest) = &status.limits_digest {
        write!(text, ", {:.12}", digest)?;
    }
    let learning = if status.learning { "  (learning what was in force before it started)" } else { "" };
    writeln!(text, "{learning}")
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
        let (tier, agents, buckets, age) = (&child.tier, child.agents, child.buckets, child.report_age_ms);
        writeln!(text, "{node:<32} {tier:<12} {zone:<16} {agents:>7} {buckets:>8} {age:>6} ms ago")?;
    }
    Ok(())
}

fn write_limits(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    let head =
        ["RATE", "OFFERED", "ADMITTED", "DROPPED", "WOULD DROP"].map(|name| format!("{name:>11}")).concat();
    writeln!(text, "\n{:<28} {:<8}{head} {:>7} {:>8}", "LIMIT", "MODE", "RATIO", "BUCKETS")?;
    for limit in &status.limits {
        write_limit(text, limit)?;
    }
    if status.limits.is_empty() {
        writeln!(text, "no limits in force")?;
    }
    Ok(())
}

fn write_limit(text: &mut String, limit: &LimitView) -> std::fmt::Result {
    let rate = limit.rate.map_or_else(|| "unlimited".to_owned(), |rate| format!("{rate:.0}/s"));
    let rates = [limit.offered, limit.admitted, limit.dropped, limit.would_drop]
        .map(|rate| format!("{:>11}", format!("{rate:.1}/s")));
    let (name, mode) = (safe(&limit.name), &limit.mode);
    writeln!(
        text,
        "{name:<28} {mode:<8}{rate:>11}{} {:>7.3} {:>8}",
        rates.concat(),
        limit.ratio,
        limit.buckets
    )?;
    for top in
        limit.top.iter().take(TOP).filter(|top| top.values.as_ref().is_none_or(|values| !values.is_empty()))
    {
        let values =
            top.values.as_ref().map_or_else(|| "(all others)".to_owned(), |values| safe(&values.join(", ")));
        writeln!(text, "  {values:<45}{:>13} {:>41.3}", format!("{:.1}/s", top.offered), top.ratio)?;
    }
    Ok(())
}

/// A text from outside, safe for a terminal: escapes instead of control characters, and not too long.
fn safe(text: &str) -> String {
    let mut safe: String = text.chars().take(WIDEST_VALUE).flat_map(escape).collect();
    if text.chars().nth(WIDEST_VALUE).is_some() {
        safe.push('…');
    }
    safe
}

fn escape(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Top, Totals};
    use super::*;

    #[test]
    fn values_from_outside_cannot_move_the_cursor() {
        let top = Top { values: Some(vec!["a\u{1b}]0;t\u{7}\n".to_owned()]), offered: 1.0, ratio: 0.5 };
        let limit = LimitView {
            name: "checkout".to_owned(),
            rate: Some(400.0),
            mode: "enforce".to_owned(),
            offered: 600.0,
            admitted: 400.0,
            dropped: 200.0,
            would_drop: 0.0,
            ratio: 1.0 / 3.0,
            buckets: 1,
            top: vec![top],
            totals: Totals::default(),
        };
        let text = render(&NodeStatus { limits: vec![limit], ..NodeStatus::default() });
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
        assert!(text.contains("checkout") && text.contains("600.0/s") && text.contains("0.333"), "{text}");
    }
}
