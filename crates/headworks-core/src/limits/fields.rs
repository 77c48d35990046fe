//! The keys of a mapping, looked up by name, with all that a fault about them needs.

use super::fault::{Fault, FaultLog, Place, quoted};
use super::format::Key;
use super::nearest::nearest;
use super::path::Path;
use super::yaml::{Entry, Kind, Node};

/// A value on its way from the tree into a limit.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) path: Path<'a>,
    pub(super) node: &'a Node<'a>,
    /// Where to point when the value itself is nowhere to be seen.
    at: Place,
}

impl<'a> Field<'a> {
    /// The document itself.
    pub(super) fn top(node: &'a Node<'a>) -> Self {
        Self { path: Path::Top, node, at: node.at }
    }

    /// An item of the list that `self` is.
    pub(super) fn item<'s>(&'s self, index: usize, node: &'s Node<'s>) -> Field<'s> {
        Field { path: Path::Item(&self.path, index), node, at: node.at }
    }

    /// The value of a key in the mapping that `self` is.
    pub(super) fn value<'s>(&'s self, entry: &'s Entry<'s>) -> Field<'s> {
        Field { path: Path::Key(&self.path, &entry.key), node: &entry.value, at: entry.key_at }
    }

    pub(super) fn fault(&self, log: &mut FaultLog, message: impl Into<String>) {
        log.add(self.told(message));
    }

    /// What is to be told of the value, though it is no fault.
    pub(super) fn told(&self, message: impl Into<String>) -> Fault {
        let at = if matches!(self.node.kind, Kind::Null) { self.at } else { self.node.at };
        Fault { line: at.line, column: at.column, path: self.path.to_string(), message: message.into() }
    }

    /// Reports a value that is not `wanted`; says nothing of what the tree has refused already.
    pub(super) fn wrong_kind(&self, log: &mut FaultLog, wanted: &str) {
        match &self.node.kind {
            Kind::Refused => {}
            Kind::Null => self.fault(log, format!("has no value: write {wanted}")),
            kind => self.fault(log, format!("must be {wanted}, not {}", kind.noun())),
        }
    }

    /// The value that `read` makes of the text.
    pub(super) fn read<T>(
        &self,
        log: &mut FaultLog,
        wanted: &str,
        read: impl FnOnce(&'a str) -> Result<T, String>,
    ) -> Option<T> {
        let Kind::Text(text) = &self.node.kind else {
            self.wrong_kind(log, wanted);
            return None;
        };
        read(text).map_err(|message| self.fault(log, message)).ok()
    }

    pub(super) fn list(&self, log: &mut FaultLog, wanted: &str) -> &'a [Node<'a>] {
        if let Kind::List(items) = &self.node.kind {
            return items;
        }
        self.wrong_kind(log, wanted);
        &[]
    }

    /// The items of the list that `self` is, if it is one.
    pub(super) fn items(&self) -> impl Iterator<Item = Field<'_>> {
        let items: &[Node<'_>] = if let Kind::List(items) = &self.node.kind { items } else { &[] };
        items.iter().enumerate().map(|(index, node)| self.item(index, node))
    }

    pub(super) fn map(&self, log: &mut FaultLog, wanted: &str) -> Option<&'a [Entry<'a>]> {
        if let Kind::Map(entries) = &self.node.kind {
            return Some(entries);
        }
        self.wrong_kind(log, wanted);
        None
    }

    /// The value of `key`, if it is there.
    pub(super) fn get(&self, key: &str) -> Option<Field<'_>> {
        let Kind::Map(entries) = &self.node.kind else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| self.value(entry))
    }

    /// The value of `key`, whose absence is a fault.
    pub(super) fn need(&self, log: &mut FaultLog, key: &str, write: &str) -> Option<Field<'_>> {
        let field = self.get(key);
        if field.is_none() {
            self.fault(log, format!("`{key}` is missing: {write}"));
        }
        field
    }

    /// Reports every key that is not known.
    pub(super) fn refuse_other_keys(&self, log: &mut FaultLog, known: &[Key]) {
        let known: Vec<&str> = known.iter().map(|key| key.name).collect();
        self.refuse_all_but(log, &known);
    }

    /// The same by names alone.
    pub(super) fn refuse_all_but(&self, log: &mut FaultLog, known: &[&str]) {
        let Kind::Map(entries) = &self.node.kind else { return };
        for entry in entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            let path = self.value(entry).path.to_string();
            log.push(entry.key_at, path, refusal(&entry.key, known));
        }
    }
}

fn refusal(key: &str, known: &[&str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(meant) => format!("unknown key {}; did you mean `{meant}`?", quoted(key)),
        None => format!("unknown key {}: known here are {}", quoted(key), known.join(", ")),
    }
}
