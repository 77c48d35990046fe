//! The pure heart of Headworks: what limits mean, how requests are decided, how a fleet's demand becomes headrooms.
//!
//! Nothing here knows a clock, a socket, a task or a source of chance: messages, moments and random draws are
//! arguments, answers are values. The program drives these state machines with real time; a simulator may drive
//! the same code with time of its own.

pub mod attributes;
pub mod bucket;
pub mod limits;
pub mod message;
pub mod units;
