//! What a node sees, as one value: `/status` serves it, metrics are made of it, `headworks status` prints it.

mod client;
mod model;
mod source;
mod table;

pub(crate) use client::{ask, ask_with, run};
#[cfg(test)]
pub(crate) use model::Zone;
pub(crate) use model::{Child, EffectView, HeldView, LimitView, NodeStatus, StoreView, TlsView, Totals};
pub(crate) use source::{held, of_agent, of_fleet, of_zone};
