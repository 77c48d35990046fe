//! Limiters that are processes of their own, started for a measurement and ended with it, and how each is asked over the wire.

mod client;
mod process;
mod servers;

pub(crate) use client::{Ask, Connection, Place};
pub(crate) use process::Process;
pub(crate) use servers::{
    Allow, Headworks, Incr, LimitReq, Nginx, Programs, Redis, SortedSet, Throttle, Throttlecrab,
};

/// A peer that could be started; of one that could not it is told that it is left out, and why.
pub(crate) fn found<P>(started: std::io::Result<P>) -> Option<P> {
    started.inspect_err(|error| eprintln!("not measured: {error}")).ok()
}
