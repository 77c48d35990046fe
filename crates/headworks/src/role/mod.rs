//! The roles, each a thin assembly of parts. `dev` assembles all of them in one process.

pub(crate) mod agent;
pub(crate) mod aggregator;
pub(crate) mod controller;
pub(crate) mod dev;
mod identity;
mod ports;
mod security;
mod standalone;

pub(crate) use ports::Ports;
