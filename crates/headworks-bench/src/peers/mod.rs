//! Limiters that are processes of their own, started for a measurement and ended with it, and how each is asked over the wire.

mod client;
mod process;
mod servers;

pub(crate) use client::{Ask, Connection, Place};
pub(crate) use process::Process;
pub(crate) use servers::{
    Allow, Headworks, Incr, LimitReq, Nginx, Programs, Redis, SortedSet, Throttle, Throttlecrab,
};
