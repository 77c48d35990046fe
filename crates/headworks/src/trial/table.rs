//! A trial as text for people.

use std::fmt::Write;

use super::time::{clock, span};
use headworks_core::history::MOST_LIMITS;

use crate::admin::Trial;
use crate::legible;

/// Bytes shown of a value; values come from outside and may be anything.
const LONGEST: usize = 80;
/// From least to most; nothing at all is a dot.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The trial as text.
pub(super) fn render(trial: &Trial) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut text, trial);
    text
}

fn write_all(text: &mut String, trial: &Trial) -> std::fmt::Result {
    write_head(text, trial)?;
    if trial.minutes == 0 {
        return write_nothing(text, trial);
    }
    write_rates(text, trial)?;
    write_hours(text, trial)?;
    write_worst(text, trial)?;
    write_hits(text, trial)
}

fn write_head(text: &mut String, trial: &Trial) -> std::fmt::Result {
    let [name, mode, rate] = [&trial.limit, &trial.mode, &trial.rate].map(|part| legible::cut(part, LONGEST));
    let overrides = if trial.overrides { ", with overrides" } else { "" };
    let known = span(trial.until.saturating_sub(trial.since));
    writeln!(text, "{name}  {mode} {rate}{overrides}  known since {} ({known})", clock(trial.since))?;
    if let Some(changed) = trial.changed {
        writeln!(text, "changed at {}: what was before was held against another limit", clock(changed))?;
    }
    Ok(())
}

fn write_nothing(text: &mut String, trial: &Trial) -> std::fmt::Result {
    if trial.full {
        return writeln!(text, "nothing is known: {MOST_LIMITS} limits with traffic are followed already");
    }
    writeln!(text, "no traffic in this time")
}

fn write_rates(text: &mut String, trial: &Trial) -> std::fmt::Result {
    writeln!(
        text,
        "\noffered  {:.1}/s in half of the minutes with traffic, up to {:.1}/s in 95 % of them; peak {:.1}/s",
        trial.median_rate, trial.p95_rate, trial.peak_rate
    )?;
    let (part, minutes) = (100.0 * trial.part_over, trial.minutes);
    writeln!(
        text,
        "{}  {part:.2} %: {:.0} of {:.0}, in {} of {minutes} minutes",
        verb(trial),
        trial.dropped + trial.would_drop,
        trial.offered,
        trial.minutes_over
    )
}

/// What became of what was over the limit: it may have been watched first and enforced later.
fn verb(trial: &Trial) -> &'static str {
    match (trial.dropped > 0.0, trial.would_drop > 0.0) {
        (true, true) => "dropped, or would have been",
        (false, true) => "would have been dropped",
        (true, false) => "dropped",
        (false, false) if trial.mode == "shadow" => "would have been dropped",
        (false, false) => "dropped",
    }
}

fn write_hours(text: &mut String, trial: &Trial) -> std::fmt::Result {
    let peaks: Vec<f64> = trial.hours.iter().map(|hour| hour.peak_rate).collect();
    let over: Vec<f64> = trial.hours.iter().map(|hour| hour.over).collect();
    writeln!(text, "\nthe last 24 hours, the last one up to now")?;
    writeln!(text, "  peak  {}  highest {:.1}/s", bars(&peaks), highest(&peaks))?;
    writeln!(text, "  over  {}  highest {:.0} in an hour", bars(&over), highest(&over))
}

fn write_worst(text: &mut String, trial: &Trial) -> std::fmt::Result {
    if trial.worst_minutes.is_empty() {
        return Ok(());
    }
    writeln!(text, "\nthe worst minutes")?;
    for minute in &trial.worst_minutes {
        let part = 100.0 * minute.over / minute.offered.max(1.0);
        writeln!(
            text,
            "  {}  {:.0} over of {:.0} ({part:.1} %), peak {:.1}/s",
            clock(minute.at),
            minute.over,
            minute.offered,
            minute.peak_rate
        )?;
    }
    Ok(())
}

fn write_hits(text: &mut String, trial: &Trial) -> std::fmt::Result {
    if trial.hardest_hit.is_empty() {
        return Ok(());
    }
    writeln!(text, "\nhit hardest, each with at least so much over the limit")?;
    for hit in &trial.hardest_hit {
        let values = hit.values.as_ref().map(|values| legible::cut(&values.join(", "), LONGEST));
        let values = values.unwrap_or_else(|| "(all others)".to_owned());
        writeln!(text, "  {values:<40} {:>12.0}", hit.over)?;
    }
    Ok(())
}

fn highest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 8")]
fn bars(values: &[f64]) -> String {
    let highest = highest(values);
    let bar = |value: &f64| {
        if *value <= 0.0 { '·' } else { BARS[((8.0 * value / highest).ceil() as usize).clamp(1, 8) - 1] }
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Trial;

    #[test]
    fn bars_show_parts_of_the_highest() {
        assert_eq!(bars(&[0.0, 0.1, 4.0, 8.0]), "·▁▄█");
        assert_eq!(bars(&[0.0; 3]), "···");
    }

    #[test]
    fn a_limit_without_traffic_says_so() {
        let trial = Trial { limit: "a".to_owned(), until: 90, since: 30, ..Trial::default() };
        let text = render(&trial);
        assert!(text.contains("known since 00:00 UTC (1 min 0 s)") && text.contains("no traffic"), "{text}");
        assert!(render(&Trial { full: true, ..trial }).contains("1000 limits"));
    }

    #[test]
    fn what_was_watched_is_told_as_such() {
        let would =
            Trial { minutes: 1, offered: 600.0, would_drop: 200.0, part_over: 1.0 / 3.0, ..Trial::default() };
        assert!(
            render(&would).contains("would have been dropped  33.33 %: 200 of 600"),
            "{}",
            render(&would)
        );
        let dropped = Trial { would_drop: 0.0, dropped: 200.0, ..would };
        assert!(render(&dropped).contains("\ndropped  33.33 %"), "{}", render(&dropped));
    }
}
