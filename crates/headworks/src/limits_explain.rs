//! `headworks limits explain`: which limits a request meets, and why it does not meet the others.

use std::path::PathBuf;

use clap::Args;
use headworks_core::attributes::Attributes;
use headworks_core::exact::Rule;
use headworks_core::explain::{Explanation, Met, Missed, explain};
use headworks_core::limits::{Enforcement, Limit, LimitSet};
use serde::Serialize;

use crate::failure::Failure;
use crate::legible;
use crate::limits_file::read;
use crate::load::Attribute;

/// Limits listed that the request does not meet.
const MISSED: usize = 20;
/// Longest line that is made of what a user gave.
const LINE: usize = 400;

/// Explain which limits a request meets, in which bucket and by which rate, and why it does not meet the others
///
/// Attributes are in the order of the request, which limits with `exactly: true` ask for. Over HTTP, `key` is one of them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  headworks limits explain --limits limits.yaml service=checkout caller=web
  headworks limits explain --limits limits.d/ --n 5 --json key=tenant-a path=/api/pay")]
pub(crate) struct ExplainArgs {
    /// The limits file, or a folder of .yaml files
    #[arg(long, env = "HEADWORKS_LIMITS", value_name = "FILE|DIR")]
    limits: PathBuf,
    /// What the request costs [default: the cost of each limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    n: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The attributes of the request
    #[arg(value_name = "key=value")]
    attributes: Vec<Attribute>,
}

/// Explains the request.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let pairs: Vec<(&str, &str)> = args.attributes.iter().map(Attribute::pair).collect();
    let twice =
        pairs.iter().enumerate().find(|(place, (key, _))| pairs[..*place].iter().any(|(k, _)| k == key));
    if let Some((_, (key, _))) = twice {
        return Err(Failure::Usage(format!("`{key}` is given twice: give each attribute once")));
    }
    let set = read(&args.limits).and_then(|content| content.parse()).map_err(Failure::from)?;
    let explanation = explain(&set, Attributes::new(&pairs), MISSED);
    let text =
        if args.json { json(&set, &pairs, args.n, &explanation) } else { text(&set, args.n, &explanation) };
    println!("{text}");
    Ok(())
}

fn text(set: &LimitSet, n: Option<u32>, explanation: &Explanation<'_>) -> String {
    let mut lines = vec![match explanation.met.len() {
        0 => format!("The request meets none of {} limits: it passes", set.limits().len()),
        met => format!("The request meets {met} of {} limits, in this order:", set.limits().len()),
    }];
    let met = explanation.met.iter().zip(1..);
    lines.extend(met.map(|(met, place)| format!("{place:>3}. {}", met_text(set, n, met))));
    if !explanation.missed.is_empty() {
        let nearest = if explanation.more > 0 { ", the nearest first" } else { "" };
        lines.push(format!("It does not meet{nearest}:"));
    }
    lines.extend(explanation.missed.iter().map(|missed| format!("  {}", missed_text(missed))));
    if explanation.more > 0 {
        lines.push(format!("and {} more", explanation.more));
    }
    lines.iter().map(|line| legible::cut(line, LINE)).collect::<Vec<_>>().join("\n")
}

fn missed_text(missed: &Missed<'_>) -> String {
    let reasons: Vec<String> = missed.reasons.iter().map(ToString::to_string).collect();
    format!("{}: {}", missed.limit.name, reasons.join("; "))
}

fn met_text(set: &LimitSet, n: Option<u32>, met: &Met) -> String {
    let limit = &met.limit;
    let values = limit.per.iter().zip(&met.values).map(|(key, value)| format!("{key}={value:?}"));
    let bucket = match (&met.lacks, limit.per.is_empty()) {
        (Some(lacks), _) => {
            return format!("{}: drops the request, which lacks {lacks} (missing: drop)", limit.name);
        }
        (None, true) => "one bucket for all".to_owned(),
        (None, false) => format!("bucket {}", values.collect::<Vec<_>>().join(" ")),
    };
    let rule = match (met.override_text(set), met.by_override) {
        (Some(text), Some(place)) => format!("overrides[{place}] ({text})"),
        _ => "the limit's own rate".to_owned(),
    };
    let (mode, cost) = (limit.mode.name(), cost(limit, n));
    let dear = never_passes(limit, n).map(|most| format!("; never passes: at most {most} at once"));
    let exact = if limit.exact().is_some() { ", exact" } else { "" };
    format!(
        "{}: {bucket}, {} by {rule}{exact}, {mode}, cost {cost}{}",
        limit.name,
        limit.rate,
        dear.unwrap_or_default()
    )
}

fn cost(limit: &Limit, n: Option<u32>) -> u32 {
    n.unwrap_or(limit.cost)
}

/// The most that passes at once, if the request costs more.
fn never_passes(limit: &Limit, n: Option<u32>) -> Option<u64> {
    limit.exact()?;
    let most = Rule::new(limit.algorithm(), limit.rate, limit.burst).most()?;
    (most > 0 && u64::from(cost(limit, n)) > most).then_some(most)
}

#[derive(Serialize)]
struct Explained<'a> {
    attributes: Vec<Pair<'a>>,
    /// In pipeline order.
    met: Vec<MetLimit<'a>>,
    not_met: Vec<MissedLimit<'a>>,
    not_met_more: usize,
}

#[derive(Serialize)]
struct Pair<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct MetLimit<'a> {
    limit: &'a str,
    bucket: Vec<Pair<'a>>,
    rate: String,
    mode: &'static str,
    enforcement: &'static str,
    cost: u32,
    #[serde(rename = "override")]
    by_override: Option<ByOverride>,
    /// The key for want of which the limit drops the request.
    lacks: Option<&'a str>,
    /// Most that passes at once, where the request costs more and so never does.
    never_passes_above: Option<u64>,
}

#[derive(Serialize)]
struct ByOverride {
    place: usize,
    #[serde(rename = "match")]
    matches: String,
}

#[derive(Serialize)]
struct MissedLimit<'a> {
    limit: &'a str,
    reasons: Vec<String>,
}

fn json(set: &LimitSet, pairs: &[(&str, &str)], n: Option<u32>, explanation: &Explanation<'_>) -> String {
    let explained = Explained {
        attributes: pairs.iter().map(|(key, value)| Pair { key, value }).collect(),
        met: explanation.met.iter().map(|met| met_limit(set, n, met)).collect(),
        not_met: explanation.missed.iter().map(missed_limit).collect(),
        not_met_more: explanation.more,
    };
    // Fails for no type of this program, which have text for keys and no errors of their own.
    serde_json::to_string_pretty(&explained).unwrap_or_default()
}

fn missed_limit<'a>(missed: &Missed<'a>) -> MissedLimit<'a> {
    let reasons = missed.reasons.iter().map(ToString::to_string).collect();
    MissedLimit { limit: &missed.limit.name, reasons }
}

fn met_limit<'a>(set: &LimitSet, n: Option<u32>, met: &'a Met) -> MetLimit<'a> {
    let limit = &met.limit;
    let bucket = limit.per.iter().zip(&met.values).map(|(key, value)| Pair { key, value });
    let other = met.by_override.zip(met.override_text(set));
    MetLimit {
        limit: &limit.name,
        bucket: bucket.collect(),
        rate: limit.rate.to_string(),
        mode: limit.mode.name(),
        enforcement: if limit.enforcement == Enforcement::DropRatio { "drop_ratio" } else { "exact" },
        cost: cost(limit, n),
        by_override: other.map(|(place, matches)| ByOverride { place, matches }),
        lacks: met.lacks.as_deref(),
        never_passes_above: never_passes(limit, n),
    }
}

#[cfg(test)]
mod tests {
    use headworks_core::limits::parse;

    use super::*;

    const FILE: &str = r#"limits:
  - {name: checkout, match: {service: "checkout*"}, per: [caller], rate: 5/second, overrides: [
      {match: {caller: "web-*"}, rate: 50/second, mode: shadow}]}
  - {name: quota, rate: 9/minute, enforcement: exact}
  - {name: search, match: {service: search}, per: [tenant], missing: drop, rate: 4/second}
"#;

    fn explained(pairs: &[(&str, &str)], n: Option<u32>, as_json: bool) -> String {
        let set = parse(FILE).unwrap();
        let explanation = explain(&set, Attributes::new(pairs), 1);
        if as_json { json(&set, pairs, n, &explanation) } else { text(&set, n, &explanation) }
    }

    #[test]
    fn tells_each_limit_in_a_line() {
        assert_eq!(
            explained(&[("service", "checkout-eu"), ("caller", "web-1")], Some(10), false),
            r#"The request meets 2 of 3 limits, in this order:
  1. checkout: bucket caller="web-1", 50/second by overrides[0] (caller: "web-*"), shadow, cost 10
  2. quota: one bucket for all, 9/minute by the limit's own rate, exact, enforce, cost 10; never passes: at most 9 at once
It does not meet:
  search: service is "checkout-eu", not "search""#
        );
        assert_eq!(
            explained(&[("service", "search")], None, false),
            r#"The request meets 2 of 3 limits, in this order:
  1. search: drops the request, which lacks tenant (missing: drop)
  2. quota: one bucket for all, 9/minute by the limit's own rate, exact, enforce, cost 1
It does not meet:
  checkout: service is "search", not "checkout*"; lacks caller"#
        );
    }

    #[test]
    fn tells_how_many_more_there_are() {
        let set = parse(r#"limits: [{name: a, match: {k: a}, rate: 1/second}, {name: b, match: {k: b, l: c}, rate: 1/second}]"#).unwrap();
        let explanation = explain(&set, Attributes::new(&[]), 1);
        let told = text(&set, None, &explanation);
        assert_eq!(
            told,
            "The request meets none of 2 limits: it passes\nIt does not meet, the nearest first:\n  a: lacks k\nand 1 more"
        );
    }

    #[test]
    fn json_has_the_same() {
        let told: serde_json::Value =
            serde_json::from_str(&explained(&[("service", "checkout"), ("caller", "web-1")], None, true))
                .unwrap();
        assert_eq!(told["met"][0]["limit"], "checkout");
        assert_eq!(told["met"][0]["bucket"][0]["value"], "web-1");
        assert_eq!(told["met"][0]["override"]["place"], 0);
        assert_eq!(told["met"][1]["enforcement"], "exact");
        assert_eq!(told["not_met"][0]["reasons"][0], "service is \"checkout\", not \"search\"");
        assert_eq!(told["not_met_more"], 0);
    }

    #[test]
    fn an_attribute_has_a_key_and_may_have_an_empty_value() {
        let attribute = |text: &str| text.parse::<Attribute>();
        assert_eq!(attribute("a=b=c").unwrap().pair(), ("a", "b=c"));
        assert_eq!(attribute("a=").unwrap().pair(), ("a", ""));
        assert!(attribute("a").is_err() && attribute("=b").is_err());
    }
}
