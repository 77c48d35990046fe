//! Limits: the configured rules, from the text of a limits file to what agents match requests against.

mod change;
mod check;
mod fault;
mod fields;
mod limit;
mod nearest;
mod path;
mod print;
mod rule;
mod text;
mod values;
mod words;
mod yaml;

pub use check::{parse, parse_bytes};
pub use fault::{Fault, Faults};
pub use limit::{Digest, Limit, LimitSet, Missing, Mode, OnSilence, SilencePolicy, SurgeGuard};
pub use print::print;
