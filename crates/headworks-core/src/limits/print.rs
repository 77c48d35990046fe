//! Limits as a limits file has them.

use std::fmt::{self, Write as _};

use super::rule::{COST, MAX_BUCKETS};
use super::values::{spelled_duration, spelled_guard};
use super::words::{
    ALGORITHMS, ENFORCEMENTS, MISSING, MODES, POLICIES, SCOPES, STORE_FAILURES, TRUTHS, word,
};
use super::{Exact, Limit, LimitSet, Missing, Mode, OnSilence, Override, Rollout, Scope, SurgeGuard};
use crate::units::Rate;

/// The canonical limits file of a set: in pipeline order, without what is left at its default.
///
/// Reading it gives the same set again, if the set was read from a file.
pub fn print(set: &LimitSet) -> String {
    let mut file = String::new();
    // Writing to a string cannot fail.
    let _ = write_set(&mut file, set);
    file
}

fn write_set(file: &mut String, set: &LimitSet) -> fmt::Result {
    if set.limits().is_empty() {
        return file.write_str("limits: []\n");
    }
    file.write_str("limits:\n")?;
    set.limits().iter().try_for_each(|limit| write_limit(file, limit))
}

fn write_limit(file: &mut String, limit: &Limit) -> fmt::Result {
    writeln!(file, "  - name: {}", scalar(&limit.name))?;
    if !limit.matches.is_empty() {
        writeln!(file, "    match:")?;
    }
    for (key, value) in &limit.matches {
        writeln!(file, "      {}: {}", scalar(key), scalar(value.as_str()))?;
    }
    if limit.exactly {
        writeln!(file, "    exactly: {}", word(true, TRUTHS))?;
    }
    if !limit.per.is_empty() {
        let keys: Vec<String> = limit.per.iter().map(|key| scalar(key)).collect();
        writeln!(file, "    per: [{}]", keys.join(", "))?;
    }
    writeln!(file, "    rate: {}", limit.rate)?;
    write_options(file, limit)
}

fn write_options(file: &mut String, limit: &Limit) -> fmt::Result {
    if let Some(burst) = limit.burst {
        writeln!(file, "    burst: {burst}")?;
    }
    if limit.cost != COST {
        writeln!(file, "    cost: {}", limit.cost)?;
    }
    if limit.mode != Mode::default() {
        writeln!(file, "    mode: {}", word(limit.mode, MODES))?;
    }
    if limit.scope != Scope::default() {
        writeln!(file, "    scope: {}", word(limit.scope, SCOPES))?;
    }
    if limit.order != 0 {
        writeln!(file, "    order: {}", limit.order)?;
    }
    if limit.surge_guard != SurgeGuard::default() {
        writeln!(file, "    surge_guard: {}", spelled_guard(limit.surge_guard))?;
    }
    if let Some(rate) = limit.max_rate_per_agent {
        writeln!(file, "    max_rate_per_agent: {rate}")?;
    }
    if limit.on_silence != OnSilence::default() {
        writeln!(file, "    on_silence: {}", on_silence(limit.on_silence))?;
    }
    if limit.max_buckets != MAX_BUCKETS {
        writeln!(file, "    max_buckets: {}", limit.max_buckets)?;
    }
    if limit.missing != Missing::default() {
        writeln!(file, "    missing: {}", word(limit.missing, MISSING))?;
    }
    if let Some(exact) = limit.exact() {
        write_exact(file, exact)?;
    }
    if let Some(rollout) = &limit.rollout {
        write_rollout(file, rollout)?;
    }
    if !limit.overrides.is_empty() {
        writeln!(file, "    overrides:")?;
    }
    limit.overrides.iter().try_for_each(|other| write_override(file, other))
}

fn write_exact(file: &mut String, exact: Exact) -> fmt::Result {
    writeln!(file, "    enforcement: {}", word(true, ENFORCEMENTS))?;
    if exact.algorithm != Exact::default().algorithm {
        writeln!(file, "    algorithm: {}", word(exact.algorithm, ALGORITHMS))?;
    }
    if exact.on_store_failure != Exact::default().on_store_failure {
        writeln!(file, "    on_store_failure: {}", word(exact.on_store_failure, STORE_FAILURES))?;
    }
    Ok(())
}

fn write_rollout(file: &mut String, rollout: &Rollout) -> fmt::Result {
    let zones: Vec<String> = rollout.zones.iter().map(|zone| scalar(zone)).collect();
    writeln!(file, "    rollout:\n      zones: [{}]\n      elsewhere:", zones.join(", "))?;
    if let Some(rate) = rollout.rate {
        writeln!(file, "        rate: {rate}")?;
    }
    rollout.mode.map_or(Ok(()), |mode| writeln!(file, "        mode: {}", word(mode, MODES)))
}

fn write_override(file: &mut String, other: &Override) -> fmt::Result {
    writeln!(file, "      - match:")?;
    for (key, value) in &other.matches {
        writeln!(file, "          {}: {}", scalar(key), scalar(value.as_str()))?;
    }
    if other.mode != Some(Mode::Off) || other.rate != Rate::Unlimited {
        writeln!(file, "        rate: {}", other.rate)?;
    }
    if let Some(burst) = other.burst {
        writeln!(file, "        burst: {burst}")?;
    }
    match other.mode {
        Some(mode) => writeln!(file, "        mode: {}", word(mode, MODES)),
        None => Ok(()),
    }
}

fn on_silence(on_silence: OnSilence) -> String {
    let policy = word(on_silence.policy, POLICIES);
    match on_silence.hold {
        None => policy.to_owned(),
        Some(hold) => format!("{{policy: {policy}, for: {}}}", spelled_duration(hold)),
    }
}

/// Text as YAML: bare where every reader of YAML takes it for the same text, else in double quotes.
fn scalar(text: &str) -> String {
    if is_bare(text) { text.to_owned() } else { in_quotes(text) }
}

fn is_bare(text: &str) -> bool {
    /// What some version of YAML takes for a truth value or for nothing.
    const OTHER_MEANINGS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !OTHER_MEANINGS.contains(&text.to_ascii_lowercase().as_str())
}

fn in_quotes(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if needs_escape(c) => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Characters that YAML forbids in the open or takes for line ends, and those that nobody can see.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{a0}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
