//! YAML, cut down to what a limits file needs: mappings, lists and text, each with its place.
//!
//! Scalars stay text exactly as written; nothing is guessed about types. What makes one line of YAML mean another
//! (anchors, aliases, merge keys, tags, keys given twice) is refused. The tree is built from parser events without
//! recursion, and its depth and size are bounded, so that no text can exhaust the stack or the memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::ops::ControlFlow;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};

use super::fault::{FaultLog, Place, quoted};
use super::path::{Step, through};

/// Limits need five levels; the tree's owner may walk and drop it by recursion up to here.
const MAX_DEPTH: usize = 16;
/// Room for the largest set of limits; bounds the memory that a hostile file can cost.
const MAX_VALUES: usize = 1_000_000;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) at: Place,
    pub(super) kind: Kind<'t>,
}

#[derive(Debug)]
pub(super) enum Kind<'t> {
    /// Nothing, `~` or `null`.
    Null,
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    Map(Vec<Entry<'t>>),
    /// Already reported; whoever meets it has nothing to add.
    Refused,
}

impl Kind<'_> {
    /// What a message calls such a value.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Kind::Null | Kind::Refused => "nothing",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}

/// A key with its value; the keys of a mapping are distinct.
#[derive(Debug)]
pub(super) struct Entry<'t> {
    pub(super) key: Cow<'t, str>,
    pub(super) key_at: Place,
    pub(super) value: Node<'t>,
}

/// The document in `text`, or nothing if it could not be read to its end.
pub(super) fn read<'t>(text: &'t str, log: &mut FaultLog) -> Option<Node<'t>> {
    let mut builder = Builder { log, open: Vec::new(), values: 0, document_begun: false, root: None };
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, span)) => builder.take(event, place(span.start)),
            Err(error) => builder.stop(place(*error.marker()), syntax_message(&error)),
        };
        if step.is_break() {
            return None;
        }
    }
    // Without a document there is nothing, which is what an empty document holds.
    builder.root.or(Some(Node { at: Place::START, kind: Kind::Null }))
}

fn place(mark: Marker) -> Place {
    Place { line: mark.line(), column: mark.col() + 1 }
}

fn syntax_message(error: &ScanError) -> String {
    let info = error.info();
    let starred = info.contains("alias") || info.contains("anchor");
    let hint = if starred { ": quote text that starts with `*` or `&`" } else { "" };
    format!("not valid YAML: {}{hint}", info.replace('\n', " "))
}

/// Puts the tree together from parser events.
struct Builder<'t, 'l> {
    log: &'l mut FaultLog,
    open: Vec<Open<'t>>,
    values: usize,
    document_begun: bool,
    root: Option<Node<'t>>,
}

/// A list or mapping whose end has not come yet.
enum Open<'t> {
    List { at: Place, items: Vec<Node<'t>> },
    Map { at: Place, entries: Vec<Entry<'t>>, lines: HashMap<Cow<'t, str>, usize>, next: Next<'t> },
}

/// What the next value in a mapping is.
enum Next<'t> {
    Key,
    ValueOf(Cow<'t, str>, Place),
    /// The value of a key that was refused.
    Discarded,
}

impl<'t> Open<'t> {
    fn map(at: Place) -> Self {
        Open::Map { at, entries: Vec::new(), lines: HashMap::new(), next: Next::Key }
    }

    fn step(&self) -> Option<Step<'_>> {
        match self {
            Open::List { items, .. } => Some(Step::Item(items.len())),
            Open::Map { next: Next::ValueOf(key, _), .. } => Some(Step::Key(key)),
            Open::Map { .. } => None,
        }
    }

    fn closed(self) -> Node<'t> {
        match self {
            Open::List { at, items } => Node { at, kind: Kind::List(items) },
            Open::Map { at, entries, .. } => Node { at, kind: Kind::Map(entries) },
        }
    }
}

impl<'t> Builder<'t, '_> {
    fn take(&mut self, event: Event<'t>, at: Place) -> ControlFlow<()> {
        match event {
            Event::DocumentStart(_) => self.document(at)?,
            Event::Alias(_) => {
                self.fault(
                    at,
                    "aliases are not supported: write the value out, or quote it to mean the text",
                );
                self.put(Node { at, kind: Kind::Refused })?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_decoration(at, anchor, tag.is_some());
                self.scalar(at, text, style)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_decoration(at, anchor, tag.is_some());
                self.open(at, Open::List { at, items: Vec::new() })?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_decoration(at, anchor, tag.is_some());
                self.open(at, Open::map(at))?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        ControlFlow::Continue(())
    }

    fn document(&mut self, at: Place) -> ControlFlow<()> {
        if self.document_begun {
            return self
                .stop(at, "a second document starts here: a limits file has one, so remove the `---`");
        }
        self.document_begun = true;
        ControlFlow::Continue(())
    }

    fn refuse_decoration(&mut self, at: Place, anchor: usize, tagged: bool) {
        if anchor > 0 {
            self.fault(at, "anchors are not supported: remove it, or quote text that starts with `&`");
        }
        if tagged {
            self.fault(at, "tags are not supported: remove it, or quote text that starts with `!`");
        }
    }

    fn scalar(&mut self, at: Place, text: Cow<'t, str>, style: ScalarStyle) -> ControlFlow<()> {
        let plain = style == ScalarStyle::Plain;
        let kind = if plain && text == "<<" && self.awaits_key() {
            self.fault(at, "merge keys (`<<`) are not supported: write the keys out");
            Kind::Refused
        } else if plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
            Kind::Null
        } else {
            Kind::Text(text)
        };
        self.put(Node { at, kind })
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { next: Next::Key, .. }))
    }

    fn open(&mut self, at: Place, node: Open<'t>) -> ControlFlow<()> {
        if self.open.len() == MAX_DEPTH {
            return self.stop(at, format!("nested more than {MAX_DEPTH} deep: a limits file needs 5 levels"));
        }
        self.open.push(node);
        ControlFlow::Continue(())
    }

    fn close(&mut self) -> ControlFlow<()> {
        match self.open.pop() {
            Some(open) => self.put(open.closed()),
            None => ControlFlow::Continue(()),
        }
    }

    /// Puts a finished value where it belongs.
    fn put(&mut self, node: Node<'t>) -> ControlFlow<()> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return self.stop(node.at, format!("more than {MAX_VALUES} keys and values: use fewer limits"));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, next, .. }) => match std::mem::replace(next, Next::Key) {
                Next::Key => self.key(node),
                Next::ValueOf(key, key_at) => entries.push(Entry { key, key_at, value: node }),
                Next::Discarded => {}
            },
        }
        ControlFlow::Continue(())
    }

    fn key(&mut self, node: Node<'t>) {
        let next = match node.kind {
            Kind::Text(key) => self.distinct(key, node.at),
            Kind::Refused => Next::Discarded,
            kind => {
                self.fault(node.at, format!("a key must be text, not {}: write `key: value`", kind.noun()));
                Next::Discarded
            }
        };
        if let Some(Open::Map { next: slot, .. }) = self.open.last_mut() {
            *slot = next;
        }
    }

    /// A key that this mapping has not had yet; of a key given twice the first stays.
    fn distinct(&mut self, key: Cow<'t, str>, at: Place) -> Next<'t> {
        let Some(Open::Map { lines, .. }) = self.open.last_mut() else { return Next::Discarded };
        let first = match lines.entry(key.clone()) {
            Slot::Vacant(free) => {
                free.insert(at.line);
                return Next::ValueOf(key, at);
            }
            Slot::Occupied(taken) => *taken.get(),
        };
        let again = if first == at.line { String::new() } else { format!(" and on line {}", at.line) };
        self.fault(at, format!("{} is given twice, on line {first}{again}: remove one", quoted(&key)));
        Next::Discarded
    }

    fn fault(&mut self, at: Place, message: impl Into<String>) {
        let path = through(self.open.iter().filter_map(Open::step));
        self.log.push(at, path, message);
    }

    /// Reports what makes reading on pointless.
    fn stop(&mut self, at: Place, message: impl Into<String>) -> ControlFlow<()> {
        self.fault(at, message);
        ControlFlow::Break(())
    }
}
