//! Outcomes: what became of one request.

use std::fmt;

/// What became of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// 2xx.
    Allowed,
    /// 429, with the limit that its body names.
    Denied(Option<String>),
    /// No verdict.
    Failed(Failure),
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// It was due, and every connection was busy.
    Overrun,
    /// No connection could be made.
    Connect,
    /// No answer in time.
    Timeout,
    /// The connection broke, or what came was no answer.
    Broken,
    /// An answer that is neither 2xx nor 429.
    Status(u16),
    /// The user would not wait for it.
    Unfinished,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Overrun => f.write_str("overrun"),
            Failure::Connect => f.write_str("connect"),
            Failure::Timeout => f.write_str("timeout"),
            Failure::Broken => f.write_str("broken"),
            Failure::Status(code) => write!(f, "status {code}"),
            Failure::Unfinished => f.write_str("unfinished"),
        }
    }
}
