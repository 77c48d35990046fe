//! Limits: the configured rules, from the text of a limits file to what agents match requests against.

mod advice;
mod change;
mod check;
mod exact;
mod fault;
mod fields;
mod limit;
mod nearest;
mod overrides;
mod path;
mod print;
mod rule;
mod text;
mod values;
mod words;
mod yaml;

pub use check::{parse, parse_bytes, review};
pub use exact::{Algorithm, Enforcement, Exact, Override, StoreFailure};
pub use fault::{Fault, Faults};
pub use limit::{Digest, Limit, LimitSet, Missing, Mode, OnSilence, SilencePolicy, SurgeGuard};
pub use overrides::MAX_OVERRIDES;
pub use print::print;
