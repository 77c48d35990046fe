//! The differences as a table for people.

use std::fmt::Write;

use super::report::{LimitChange, Report};
use crate::legible;
use crate::status::EffectView;

/// Bytes shown of a text that may be anything.
const LONGEST: usize = 256;

/// The report as text.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut text, report);
    text
}

fn write_all(text: &mut String, report: &Report) -> std::fmt::Result {
    let running = legible::cut(&report.running_digest, LONGEST);
    writeln!(
        text,
        "running: generation {}, {running:.12}   new: {:.12}",
        report.running_generation, report.new_digest
    )?;
    if report.learning {
        writeln!(text, "the controller has just started, and may not have heard of all demand yet")?;
    }
    if report.limits.is_empty() {
        return writeln!(text, "nothing would change");
    }
    let head = ["OFFERED", "DROPPED", "WOULD DROP", "NEWLY"].map(|name| format!("{name:>13}")).concat();
    writeln!(text, "\n{:<8} {:<32}{head}", "CHANGE", "LIMIT")?;
    report.limits.iter().try_for_each(|limit| write_limit(text, limit))?;
    write_verdict(text, report)
}

fn write_limit(text: &mut String, limit: &LimitChange) -> std::fmt::Result {
    let name = legible::cut(&limit.limit, LONGEST);
    writeln!(text, "{:<8} {name:<32}{}", limit.change, figures(limit.effect.as_ref()))?;
    for field in &limit.fields {
        let [name, old, new] = [&field.field, &field.old, &field.new].map(|part| legible::cut(part, LONGEST));
        writeln!(text, "           {name}: {old} → {new}")?;
    }
    if let Some(effect) = &limit.effect {
        write_basis(text, limit, effect)?;
    }
    if limit.unlisted > 0.0 {
        writeln!(
            text,
            "           {:.1}/s more are in buckets too many to list, and not judged here",
            limit.unlisted
        )?;
    }
    Ok(())
}

fn figures(effect: Option<&EffectView>) -> String {
    let figures = match effect {
        None => [const { String::new() }; 4],
        Some(effect) if effect.basis == "unknown" => [(); 4].map(|()| "?".to_owned()),
        Some(effect) => {
            let [offered, dropped, would_drop] =
                [effect.offered, effect.dropped, effect.would_drop].map(|rate| format!("{rate:.1}/s"));
            [offered, dropped, would_drop, format!("{:.1} %", 100.0 * effect.newly_part)]
        }
    };
    figures.map(|figure| format!("{figure:>13}")).concat().trim_end().to_owned()
}

fn write_basis(text: &mut String, limit: &LimitChange, effect: &EffectView) -> std::fmt::Result {
    if limit.change == "added" {
        writeln!(text, "           {}", legible::cut(&effect.to, LONGEST))?;
    }
    match effect.basis.as_str() {
        "unknown" => writeln!(text, "           its demand is not known: nothing in force counts it"),
        "other_match" => writeln!(text, "           its demand was counted under the match in force"),
        "like" => {
            writeln!(
                text,
                "           its demand is that of a limit in force that concerns the same requests"
            )
        }
        _ => Ok(()),
    }
}

fn write_verdict(text: &mut String, report: &Report) -> std::fmt::Result {
    if report.would_be_held {
        writeln!(
            text,
            "\na controller would hold this back: confirm it with `headworks limits apply`, or write\n\
             `confirm: {}` beside `limits:` in the file",
            report.new_digest
        )?;
    }
    if report.confirmed {
        writeln!(text, "\nthe file confirms itself: no controller would hold it back")?;
    }
    Ok(())
}
