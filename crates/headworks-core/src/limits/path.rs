//! Where a value stands in the document.

use std::borrow::Cow;

use super::fault::quoted;

/// The way from the top of the document to a value; spelled out only when a fault needs it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    /// The document itself.
    Top,
    /// The value of a key in a mapping.
    Key(&'a Path<'a>, &'a str),
    /// The place in a list, from 0.
    Item(&'a Path<'a>, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Path::Top => Ok(()),
            Path::Key(Path::Top, key) => f.write_str(&spelled(key)),
            Path::Key(parent, key) => write!(f, "{parent}.{}", spelled(key)),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A key as paths show it: bare if it cannot be mistaken for a longer path.
fn spelled(key: &str) -> Cow<'_, str> {
    let bare = key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') && key.len() <= 64;
    if bare && !key.is_empty() { Cow::Borrowed(key) } else { Cow::Owned(quoted(key)) }
}

/// The path through `steps`, from the outermost on.
pub(super) fn through<'a>(steps: impl IntoIterator<Item = Step<'a>>) -> String {
    steps.into_iter().fold(String::new(), |path, step| match step {
        Step::Key(key) if path.is_empty() => spelled(key).into_owned(),
        Step::Key(key) => format!("{path}.{}", spelled(key)),
        Step::Item(index) => format!("{path}[{index}]"),
    })
}

/// One step of a path that is still being walked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Item(usize),
}
