//! What a viewer is told: JSON of one sample, for what it looks at.

mod curves;
mod fleet;
mod head;
mod limit;
mod limits;
mod row;

use serde::{Deserialize, Serialize};

use super::board::{Known, Zones};
use super::series::Series;
pub(super) use head::Head;

/// Rows of one page.
const PAGE: usize = 25;
/// Longest text to search for, and longest name, in bytes.
const MAX_TEXT: usize = 256;

/// What a viewer looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Asked {
    view: View,
    /// A part of a name: of limits, of nodes, or of bucket values.
    search: String,
    sort: Sort,
    /// Whether what comes last by `sort` comes first.
    reverse: bool,
    /// From 0.
    page: usize,
    /// The limit of a limit's page.
    limit: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum View {
    #[default]
    Limits,
    Limit,
    Fleet,
    /// Nothing but the head.
    Head,
}

/// By what limits are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// What is over its limits, then what is offered most.
    #[default]
    Over,
    Name,
    Offered,
    Admitted,
    Ratio,
    /// The order in which requests meet them.
    Pipeline,
}

impl Asked {
    /// What is wrong with the question.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.search.len().max(self.limit.len()) {
            0..=MAX_TEXT => Ok(()),
            _ => Err(format!("ask for texts of at most {MAX_TEXT} bytes")),
        }
    }

    /// The limit of which more is gathered for this.
    pub(super) fn watched(&self) -> Option<&str> {
        (self.view == View::Limit).then_some(&*self.limit)
    }
}

#[derive(Serialize)]
struct Told<'a, T> {
    head: &'a Head,
    view: View,
    #[serde(flatten)]
    what: T,
}

/// What is asked for, of one sample.
pub(super) fn render(asked: &Asked, known: &Known, series: &Series, zones: &Zones) -> String {
    let head = &known.head;
    match asked.view {
        View::Limits => json(head, asked.view, limits::page(asked, known, series)),
        View::Limit => json(head, asked.view, limit::page(asked, known, series, zones)),
        View::Fleet => json(head, asked.view, fleet::page(asked, known, zones)),
        View::Head => json(head, asked.view, ()),
    }
}

fn json(head: &Head, view: View, what: impl Serialize) -> String {
    // Maps with texts as keys, numbers and texts: nothing of it can fail.
    serde_json::to_string(&Told { head, view, what }).unwrap_or_default()
}

/// A page of many things.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    number: usize,
    pages: usize,
}

impl Page {
    /// The page with this number, or the last one if there are fewer.
    fn of(asked: usize, things: usize) -> Self {
        let pages = things.div_ceil(PAGE).max(1);
        Self { number: asked.min(pages - 1), pages }
    }

    fn take<T>(&self, things: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        things.skip(self.number * PAGE).take(PAGE)
    }
}

/// Whether a text has this part, whatever the case of its letters.
fn has(text: &str, part: &str) -> bool {
    part.is_empty() || text.to_lowercase().contains(part)
}

#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod tests;
