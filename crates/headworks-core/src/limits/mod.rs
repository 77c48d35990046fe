//! Limits: the configured rules, from the text of a limits file to what agents match requests against.

mod advice;
mod change;
mod check;
mod confirm;
mod difference;
mod exact;
mod fault;
mod fields;
pub mod format;
pub mod import;
mod limit;
mod nearest;
mod overridden;
mod overrides;
mod path;
mod print;
mod rollout;
mod rule;
mod scope;
mod text;
mod values;
mod words;
mod yaml;

pub use check::{parse, parse_bytes, review};
pub use confirm::confirmation;
pub use difference::{Difference, DifferenceKind, FieldDifference, difference};
pub use exact::{Algorithm, Enforcement, Exact, StoreFailure};
pub use fault::{Fault, Faults};
pub use format::MAX_ZONES;
pub use limit::{Digest, Limit, LimitSet, Missing, Mode, OnSilence, SilencePolicy, SurgeGuard};
pub use overridden::{Overridden, Override};
pub use overrides::MAX_OVERRIDES;
pub use print::print;
pub use rollout::Rollout;
pub use scope::Scope;
