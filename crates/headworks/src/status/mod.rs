//! What a node sees, as one value: `/status` serves it, metrics are made of it, `headworks status` prints it.

mod client;
mod model;
mod source;
mod table;

pub(crate) use client::{ask, run};
pub(crate) use model::{LimitView, NodeStatus, StoreView, TlsView};
pub(crate) use source::{of_agent, of_fleet, of_zone};
