//! A deterministic simulator of fleets, around the very state machines that the program runs.
//!
//! A scenario is a text (see `script`): a fleet, its limits, what is offered, what happens, and what is measured.
//! Time is a number here and chance has a seed, so a run gives the same transcript every time.

pub mod catalogue;
mod chance;
pub mod chart;
mod log;
mod measure;
mod run;
mod script;
mod world;

pub use run::{Outcome, Picture, run};
pub use script::{Script, ScriptError, parse, parse_with_seed};

/// The language of scripts, explained to those who write them.
pub const LANGUAGE: &str = include_str!("script/language.txt");
