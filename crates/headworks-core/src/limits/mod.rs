//! Limits: the configured rules, from the text of a limits file to what agents match requests against.

mod check;
mod fault;
mod limit;
mod yaml;

pub use check::parse;
pub use fault::{Fault, Faults};
pub use limit::{Digest, Limit, LimitSet, Missing, Mode, OnSilence, SilencePolicy};
