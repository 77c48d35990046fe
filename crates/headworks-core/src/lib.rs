//! The pure heart of Headworks: what limits mean, how requests are decided, how a fleet's demand becomes headrooms.
//!
//! Nothing here knows a clock, a socket, a task or a source of chance: messages, moments and random draws are
//! arguments, answers are values. The program drives these state machines with real time; a simulator may drive
//! the same code with time of its own.

pub mod agent;
pub mod attributes;
pub mod awake;
pub mod backoff;
pub mod bucket;
pub mod budget;
pub mod children;
pub mod decision;
pub mod duration;
pub mod exact;
pub mod explain;
pub mod fleet;
pub mod guard;
pub mod history;
pub mod invariant;
pub mod ladder;
pub mod law;
pub mod limits;
pub mod link;
pub mod matching;
pub mod message;
pub mod meter;
pub mod node;
pub mod noise;
pub mod numbers;
pub mod overrides;
pub mod pattern;
pub mod quota;
mod readings;
pub mod registry;
pub mod significance;
pub mod status;
pub mod switch;
#[cfg(test)]
mod testing;
pub mod units;
pub mod what_if;
pub mod zone;
