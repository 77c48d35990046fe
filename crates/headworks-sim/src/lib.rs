//! A deterministic simulator of fleets, around the very state machines that the program runs.

pub mod chart;
