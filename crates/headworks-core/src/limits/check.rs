//! From the text of a limits file to checked limits.
//!
//! A fault never stops the reading: a default stands in for the faulty value, so that all other faults are found
//! too, and the limits are handed out only if there was no fault at all.

use super::advice::advise;
use super::confirm;
use super::fault::{FaultLog, Place};
use super::fields::Field;
use super::format;
use super::rule::{Names, limit};
use super::text::{clean, decode};
use super::yaml::{Kind, Node, read};
use super::{Faults, Limit, LimitSet};

/// Above this the pipeline, not the file, would be the trouble.
const MAX_LIMITS: usize = 100_000;
/// An empty file is more often an accident than a wish.
const EMPTY: &str = "write `limits: []` to have none";

/// Reads a limits file whole: either every limit is sound, or all its faults come back together.
pub fn parse(text: &str) -> Result<LimitSet, Faults> {
    checked(Some(text), FaultLog::default(), &mut |_, _| {})
}

/// Reads a limits file as it lies on disk: UTF-8, with or without a byte-order mark.
pub fn parse_bytes(bytes: &[u8]) -> Result<LimitSet, Faults> {
    bytes_checked(bytes, &mut |_, _| {})
}

/// Reads a limits file as [`parse_bytes`] does, and tells of limits that another kind of enforcement would hold better in a
/// fleet of so many agents. These are no faults: the limits are in force as they stand.
pub fn review(bytes: &[u8], agents: u32) -> Result<(LimitSet, Option<Faults>), Faults> {
    let mut advice = FaultLog::default();
    let set = bytes_checked(bytes, &mut |field, limit| advise(field, limit, agents, &mut advice))?;
    Ok((set, advice.vouch_for(()).err()))
}

/// What is done with each limit that was read.
type Each<'a> = &'a mut dyn FnMut(&Field<'_>, &Limit);

fn bytes_checked(bytes: &[u8], each: Each<'_>) -> Result<LimitSet, Faults> {
    let mut log = FaultLog::default();
    let text = decode(bytes, &mut log);
    checked(text, log, each)
}

fn checked(text: Option<&str>, mut log: FaultLog, each: Each<'_>) -> Result<LimitSet, Faults> {
    let text = text.and_then(|text| clean(text, &mut log));
    let tree = text.as_deref().and_then(|text| read(text, &mut log));
    let limits = tree.map(|tree| document(&tree, &mut log, each)).unwrap_or_default();
    log.vouch_for(limits).map(LimitSet::new)
}

fn document(tree: &Node<'_>, log: &mut FaultLog, each: Each<'_>) -> Vec<Limit> {
    let top = Field::top(tree);
    match &tree.kind {
        Kind::Map(_) => {
            top.refuse_other_keys(log, format::FILE);
            confirm::digest(&top, log);
            return top.need(log, "limits", EMPTY).map(|field| limits(&field, log, each)).unwrap_or_default();
        }
        Kind::Null => log.push(Place::START, String::new(), format!("the file is empty: {EMPTY}")),
        kind => {
            top.fault(log, format!("the file must be a mapping with the key `limits`, not {}", kind.noun()));
        }
    }
    Vec::new()
}

fn limits(field: &Field<'_>, log: &mut FaultLog, each: Each<'_>) -> Vec<Limit> {
    if matches!(field.node.kind, Kind::Null) {
        field.fault(log, format!("has no value: {EMPTY}"));
        return Vec::new();
    }
    let items = field.list(log, "a list of limits, each starting with `- name:`");
    if let Some(first_over) = items.get(MAX_LIMITS) {
        let over = field.item(MAX_LIMITS, first_over);
        over.fault(log, format!("more than {MAX_LIMITS} limits: use fewer, with `per` for values alike"));
    }
    let mut names = Names::new();
    let mut limits = Vec::new();
    for item in field.items().take(MAX_LIMITS) {
        if let Some(limit) = limit(&item, &mut names, log) {
            each(&item, &limit);
            limits.push(limit);
        }
    }
    limits
}
