//! Files of limitador: a list of limits, whose conditions and variables are expressions over a request's descriptors.

use std::collections::HashMap;

use super::super::fault::{FaultLog, quoted};
use super::super::fields::Field;
use super::super::yaml::{Kind, Node};
use super::super::{Algorithm, Enforcement, Exact, Fault, Limit, LimitSet, values};
use super::{DOMAIN, Holding, Imported, Names, Refused, document};
use crate::pattern::Pattern;
use crate::units::{Rate, Unit};

const KEYS: [&str; 7] = ["id", "name", "namespace", "max_value", "seconds", "conditions", "variables"];
/// The shortest first: a rate is told by the shortest in which it is a whole number.
const UNITS: [Unit; 6] = [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Month, Unit::Year];

/// Limits from files of limitador.
pub fn limitador(files: &[&[u8]], holding: Holding) -> Result<Imported, Refused> {
    let mut import = Import {
        holding,
        names: Names::default(),
        limits: Vec::new(),
        notes: Vec::new(),
        seen: HashMap::new(),
    };
    for (file, bytes) in files.iter().enumerate() {
        document(bytes, |tree, log| import.file(file, tree, log)).map_err(|faults| (file, faults))?;
    }
    let Import { limits, notes, .. } = import;
    Ok(Imported { limits: LimitSet::new(limits), notes })
}

struct Import {
    holding: Holding,
    names: Names,
    limits: Vec<Limit>,
    notes: Vec<(usize, Fault)>,
    /// Where each limit stands by what makes it the same as another: all but the amount and the name.
    seen: HashMap<String, usize>,
}

/// What a limit asks of a request.
#[derive(Default)]
struct Selector {
    /// Key and value.
    equal: Vec<(String, String)>,
    /// Keys whose values have counters of their own.
    variables: Vec<String>,
}

impl Import {
    fn file(&mut self, file: usize, tree: &Node<'_>, log: &mut FaultLog) {
        let top = Field::top(tree);
        for (place, node) in top.list(log, "a list of limits, each with `namespace`").iter().enumerate() {
            self.limit(file, &top.item(place, node), log);
        }
    }

    fn limit(&mut self, file: usize, field: &Field<'_>, log: &mut FaultLog) {
        if field.map(log, "a mapping with `namespace`, `max_value` and `seconds`").is_none() {
            return;
        }
        field.refuse_all_but(log, &KEYS);
        let namespace =
            field.need(log, "namespace", "each limit is for one").and_then(|namespace| {
                namespace.read(log, "text", |text| {
                    if text.is_empty() { Err("is empty".to_owned()) } else { Ok(text) }
                })
            });
        let amount = number(field, log, "max_value");
        let seconds = number(field, log, "seconds").filter(|seconds| *seconds > 0);
        let (conditions, variables) = (texts(field, log, "conditions"), texts(field, log, "variables"));
        let name = field.get("name").or_else(|| field.get("id")).and_then(|name| name.read(log, "text", Ok));
        let (Some(namespace), Some(amount), Some(seconds)) = (namespace, amount, seconds) else { return };

        let (mut sorted, mut split) = (conditions.clone(), variables.clone());
        sorted.sort_unstable();
        split.sort_unstable();
        let identity = format!("{namespace:?} {seconds} {sorted:?} {split:?}");
        if let Some(first) = self.seen.insert(identity, field.node.at.line) {
            field.fault(
                log,
                format!(
                    "is the same limit as the one on line {first}: they differ in nothing but the amount"
                ),
            );
        }
        match selector(&conditions, &variables).and_then(|selector| Ok((selector, rate(amount, seconds)?))) {
            Err(why) => self.notes.push((file, field.told(format!("not carried over: {why}")))),
            Ok((selector, rate)) => {
                let name =
                    self.names.unique(&name.map_or_else(|| called(namespace, &selector), str::to_owned));
                self.limits.push(self.made(name, namespace, selector, (amount, seconds), rate));
            }
        }
    }

    fn made(&self, name: String, namespace: &str, selector: Selector, held: (u64, u64), rate: Rate) -> Limit {
        let (amount, seconds) = held;
        let is_of_a_unit = matches!(rate, Rate::Per { unit, .. } if unit.duration().as_secs() == seconds);
        let mut limit = self.holding.limit(name, rate, Algorithm::FixedWindow);
        if let (Enforcement::Exact(exact), false) = (&mut limit.enforcement, is_of_a_unit) {
            // A window of another length: as many at once, and as many over time.
            *exact = Exact { algorithm: Algorithm::TokenBucket, ..*exact };
            limit.burst = Some(amount);
        }
        let domain = (DOMAIN.to_owned(), Pattern::new(namespace));
        let equal = selector.equal.into_iter().map(|(key, value)| (key, Pattern::new(&value)));
        limit.matches = [domain].into_iter().chain(equal).collect();
        limit.per = selector.variables;
        limit
    }
}

fn called(namespace: &str, selector: &Selector) -> String {
    let equal = selector.equal.iter().map(|(key, value)| format!("/{key}:{value}"));
    let per = selector.variables.iter().map(|key| format!("/{key}"));
    equal.chain(per).fold(namespace.to_owned(), |name, part| name + &part)
}

/// So many in so many seconds, by the shortest unit that has a whole number of them.
fn rate(amount: u64, seconds: u64) -> Result<Rate, String> {
    let per = |unit: &Unit| {
        let whole =
            amount.checked_mul(unit.duration().as_secs()).filter(|units| units.is_multiple_of(seconds))?;
        Some(Rate::Per { amount: whole / seconds, unit: *unit })
    };
    // The unit itself where it is one: 60 a minute are not one a second.
    let own = UNITS.iter().find(|unit| unit.duration().as_secs() == seconds);
    own.and_then(per).or_else(|| UNITS.iter().find_map(per)).ok_or_else(|| {
        format!(
            "{amount} in {seconds} seconds is no whole number by the second, minute, hour, day, month or year"
        )
    })
}

fn selector(conditions: &[String], variables: &[String]) -> Result<Selector, String> {
    let mut selector = Selector::default();
    for condition in conditions {
        let (key, value) = equality(condition).ok_or_else(|| {
            format!("condition {} is no equality of a descriptor's value with a text", quoted(condition))
        })?;
        if value.contains('*') {
            return Err(format!(
                "in condition {} the value holds `*`, which here stands for any text",
                quoted(condition)
            ));
        }
        match selector.equal.iter().find(|(known, _)| *known == key) {
            Some((_, known)) if *known != value => {
                return Err(format!("its conditions want two values of {}", quoted(key)));
            }
            Some(_) => {}
            None => selector.equal.push((key.to_owned(), value.to_owned())),
        }
    }
    for variable in variables {
        let key = descriptor_key(variable.trim())
            .ok_or_else(|| format!("variable {} is no descriptor's value", quoted(variable)))?;
        let is_known =
            selector.variables.iter().chain(selector.equal.iter().map(|(key, _)| key)).any(|k| k == key);
        if !is_known {
            selector.variables.push(key.to_owned());
        }
    }
    Ok(selector)
}

/// Key and value of `descriptors[0]['key'] == 'value'`, either way round.
fn equality(condition: &str) -> Option<(&str, &str)> {
    let (left, right) = condition.split_once("==")?;
    let (left, right) = (left.trim(), right.trim());
    let one_way = |key, value| Some((descriptor_key(key)?, in_quotes(value)?));
    one_way(left, right).or_else(|| one_way(right, left))
}

/// The key of `descriptors[0]['key']`, of `descriptors[0].key`, or of a bare `key` as older files have it.
fn descriptor_key(text: &str) -> Option<&str> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    let bare = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    match text.strip_prefix("descriptors[0]") {
        Some(rest) => match rest.strip_prefix('.') {
            Some(name) => Some(name).filter(|name| is_name(name)),
            None => in_quotes(rest.strip_prefix('[')?.strip_suffix(']')?.trim()),
        },
        None => Some(text).filter(|name| is_name(name) && bare(name) && !name.starts_with("limit.")),
    }
}

/// The text between quotes, if it holds none and no escape.
fn in_quotes(text: &str) -> Option<&str> {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).filter(|text| !text.is_empty() && !text.contains(['\'', '"', '\\']))
}

fn number(holder: &Field<'_>, log: &mut FaultLog, key: &str) -> Option<u64> {
    let field = holder.need(log, key, "each limit has one")?;
    field.read(log, "a number", |text| values::whole(text, 0..=i64::MAX)).map(i64::unsigned_abs)
}

/// The texts of a list, which may be left out or empty.
fn texts(holder: &Field<'_>, log: &mut FaultLog, key: &str) -> Vec<String> {
    let field = holder.get(key).filter(|field| !matches!(field.node.kind, Kind::Null));
    let Some(field) = field else { return Vec::new() };
    let items = field.list(log, "a list of expressions").iter().enumerate();
    items
        .filter_map(|(place, node)| field.item(place, node).read(log, "text", |text| Ok(text.to_owned())))
        .collect()
}
