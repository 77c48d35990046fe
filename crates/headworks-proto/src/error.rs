//! What makes a message unusable.

/// A message that cannot be used as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A message of a kind that this release does not know, or of none.
    #[error("message of no known kind; is the other side more than one release ahead?")]
    NoMessage,
    /// A field that must be there is not.
    #[error("{0} is missing, or of a later release")]
    Missing(&'static str),
    /// A text is longer than its bound.
    #[error("{field} has {length} bytes; at most {max} are allowed")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its length, in bytes.
        length: usize,
        /// The most allowed, in bytes.
        max: usize,
    },
    /// A name that could forge a line of a log.
    #[error("{0} has a control character; rename the node, or its zone")]
    ControlCharacter(&'static str),
    /// Columns that belong together differ in length.
    #[error("column {column} has {length} values for {expected} buckets")]
    UnequalColumns {
        /// Which column.
        column: &'static str,
        /// Its length.
        length: usize,
        /// The number of buckets.
        expected: usize,
    },
    /// A field that cannot have the length it has.
    #[error("{0} has a wrong length")]
    WrongLength(&'static str),
}
