//! The tree in a process: a parent's state machine on a thread of its own, and the streams of its children.
//!
//! One thread owns the state. Streams send it messages over a bounded channel; it answers into a one-place box per
//! child, so that a slow child gets the newest plan when it is ready, never a queue of old ones.

mod codec;
mod connection;
mod downlink;
mod driver;
mod gate;
mod held;
mod pace;
mod seat;
mod visitor;

pub(crate) use downlink::{TreePort, serve};
pub(crate) use driver::{Handle, Input, PlanBox, StreamId, start};
pub(crate) use held::{Applied, HoldBack};
pub(crate) use pace::Pace;
pub(crate) use seat::{Change, FleetSeat, Seat, ZoneSeat};
pub(crate) use visitor::{Attached, TreeCounters, Visitor};
