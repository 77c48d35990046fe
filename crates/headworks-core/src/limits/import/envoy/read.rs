//! One file, into descriptors.

use std::collections::HashMap;

use super::super::super::Fault;
use super::super::super::fault::{FaultLog, quoted};
use super::super::super::fields::Field;
use super::super::super::values;
use super::super::super::words::UNITS;
use super::super::super::yaml::{Kind, Node};
use crate::units::{Rate, Unit};

/// The keys that any mapping of such a file may have.
const KEYS: [&str; 16] = [
    "domain",
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "unit",
    "requests_per_unit",
    "unlimited",
    "shadow_mode",
    "quota_mode",
    "name",
    "replaces",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
];
const TRUTHS: [(&str, bool); 6] =
    [("true", true), ("false", false), ("yes", true), ("no", false), ("on", true), ("off", false)];

/// What a file says.
pub(super) struct Read {
    pub(super) domain: String,
    pub(super) descriptors: Vec<Descriptor>,
    /// What has no meaning here, whichever limits come of it.
    pub(super) notes: Vec<Fault>,
}

/// One descriptor, with those below it.
pub(super) struct Descriptor {
    pub(super) file: usize,
    /// Where it stands, for what is to be told of it.
    place: Fault,
    pub(super) key: String,
    pub(super) value: Option<String>,
    /// All values that fit have one counter.
    pub(super) shared: bool,
    pub(super) shadow: bool,
    pub(super) spec: Option<Spec>,
    pub(super) children: Vec<Descriptor>,
}

/// What it limits.
pub(super) struct Spec {
    pub(super) name: Option<String>,
    pub(super) rate: Rate,
}

impl Descriptor {
    /// What such a file's reader calls it, among its siblings.
    pub(super) fn composite(&self) -> String {
        match &self.value {
            Some(value) => format!("{}_{value}", self.key),
            None => self.key.clone(),
        }
    }

    pub(super) fn note(&self, message: String) -> Fault {
        Fault { message, ..self.place.clone() }
    }

    pub(super) fn fault(&self, log: &mut FaultLog, message: String) {
        log.add(self.note(message));
    }
}

/// A whole file.
pub(super) fn domain(tree: &Node<'_>, file: usize, log: &mut FaultLog) -> Option<Read> {
    let top = Field::top(tree);
    top.map(log, "a mapping with `domain` and `descriptors`")?;
    top.refuse_all_but(log, &KEYS);
    let domain = text(&top, log, "domain", "each file is for one");
    let mut reader = Reader { file, notes: Vec::new() };
    let descriptors = reader.descriptors(&top, log);
    Some(Read { domain: domain?, descriptors, notes: reader.notes })
}

struct Reader {
    file: usize,
    notes: Vec<Fault>,
}

impl Reader {
    fn descriptors(&mut self, holder: &Field<'_>, log: &mut FaultLog) -> Vec<Descriptor> {
        let Some(field) = holder.get("descriptors") else { return Vec::new() };
        if matches!(field.node.kind, Kind::Null) {
            return Vec::new();
        }
        let items = field.list(log, "a list of descriptors, each starting with `- key:`");
        let mut lines: HashMap<String, usize> = HashMap::new();
        let mut descriptors = Vec::new();
        for (place, node) in items.iter().enumerate() {
            let item = field.item(place, node);
            let Some(descriptor) = self.descriptor(&item, log) else { continue };
            let composite = descriptor.composite();
            if let Some(first) = lines.get(&composite) {
                item.fault(log, format!("{} stands here twice, first on line {first}", quoted(&composite)));
            }
            lines.entry(composite).or_insert(descriptor.place.line);
            descriptors.push(descriptor);
        }
        descriptors
    }

    fn descriptor(&mut self, field: &Field<'_>, log: &mut FaultLog) -> Option<Descriptor> {
        field.map(log, "a mapping that starts with `key:`")?;
        field.refuse_all_but(log, &KEYS);
        let key = text(field, log, "key", "each descriptor has one");
        let value = field.get("value").filter(|value| !matches!(value.node.kind, Kind::Null));
        let value = value.and_then(|value| value.read(log, "text", Ok)).filter(|value| !value.is_empty());
        let shared = truth(field, log, "share_threshold");
        if shared && value.is_none_or(|value| !value.contains('*')) {
            field.fault(log, "`share_threshold` has no effect on a value without `*`: remove it");
        }
        let spec = field.get("rate_limit").and_then(|rate| self.spec(&rate, log));
        self.without_a_verdict(field, log);
        let shadow = truth(field, log, "shadow_mode");
        let quota = truth(field, log, "quota_mode");
        if quota && spec.is_some() {
            let message = "carried over in shadow: `quota_mode` refuses only where every such limit of a request is over";
            self.notes.push(field.told(message));
        }
        Some(Descriptor {
            file: self.file,
            place: field.told(""),
            key: key?,
            value: value.map(str::to_owned),
            shared,
            shadow: shadow || quota,
            spec,
            children: self.descriptors(field, log),
        })
    }

    /// What changes metrics, or what a proxy is told.
    fn without_a_verdict(&mut self, field: &Field<'_>, log: &mut FaultLog) {
        for key in ["detailed_metric", "value_to_metric"] {
            if truth(field, log, key) {
                self.notes.push(
                    field.told(format!("`{key}` is not carried over: metrics name limits, never values")),
                );
            }
        }
        if field.get("metadata").is_some() {
            self.notes.push(field.told("`metadata` is not carried over: verdicts carry none"));
        }
    }

    fn spec(&mut self, field: &Field<'_>, log: &mut FaultLog) -> Option<Spec> {
        field.map(log, "a mapping with `unit` and `requests_per_unit`")?;
        field.refuse_all_but(log, &KEYS);
        let name = field.get("name").and_then(|name| name.read(log, "text", Ok)).map(str::to_owned);
        self.replaces(field, name.as_deref(), log);
        let unit = field.get("unit").filter(|unit| !matches!(unit.node.kind, Kind::Null));
        if truth(field, log, "unlimited") {
            if let Some(unit) = unit {
                unit.fault(log, "`unit` has no meaning with `unlimited: true`: remove one");
            }
            return Some(Spec { name, rate: Rate::Unlimited });
        }
        let amount = match field.get("requests_per_unit") {
            Some(amount) => amount
                .read(log, "a number", |text| values::whole(text, 0..=i64::from(u32::MAX)))?
                .unsigned_abs(),
            None => 0,
        };
        let Some(unit) = unit else {
            field.fault(log, "`unit` is missing: write second, minute, hour, day, week, month or year");
            return None;
        };
        let unit = unit.read(log, "a word", read_unit)?;
        let Some(unit) = unit else {
            self.notes.push(
                field.told("not carried over: limits have no week; write a rate per day or month by hand"),
            );
            return None;
        };
        Some(Spec { name, rate: Rate::Per { amount, unit } })
    }

    fn replaces(&mut self, field: &Field<'_>, own: Option<&str>, log: &mut FaultLog) {
        let Some(list) = field.get("replaces") else { return };
        for item in list.items() {
            let Some(name) = text(&item, log, "name", "it names the limit that is replaced") else {
                continue;
            };
            if Some(name.as_str()) == own {
                item.fault(log, "a limit cannot replace itself");
            }
            let message = format!(
                "`replaces` of {} is not carried over: a request that meets both is held to both",
                quoted(&name)
            );
            self.notes.push(item.told(message));
        }
    }
}

/// The unit of that name; nothing for a week, which limits do not have.
fn read_unit(text: &str) -> Result<Option<Unit>, String> {
    let lower = text.to_ascii_lowercase();
    let unit = UNITS.iter().find(|(name, _)| *name == lower).map(|(_, unit)| *unit);
    match unit {
        None if lower != "week" => {
            Err(format!("{} is no unit: write second, minute, hour, day, week, month or year", quoted(text)))
        }
        unit => Ok(unit),
    }
}

fn text(holder: &Field<'_>, log: &mut FaultLog, key: &str, why: &str) -> Option<String> {
    let field = holder.need(log, key, why)?;
    let text = field
        .read(log, "text", |text| if text.is_empty() { Err("is empty".to_owned()) } else { Ok(text) })?;
    Some(text.to_owned())
}

fn truth(holder: &Field<'_>, log: &mut FaultLog, key: &str) -> bool {
    let Some(field) = holder.get(key) else { return false };
    let read = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let truth = TRUTHS.iter().find(|(word, _)| *word == lower).map(|(_, truth)| *truth);
        truth.ok_or_else(|| format!("{} is neither `true` nor `false`", quoted(text)))
    };
    field.read(log, "`true` or `false`", read).unwrap_or_default()
}
