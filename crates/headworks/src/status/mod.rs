//! What a node sees, as one value: `/status` serves it, metrics are made of it, `headworks status` prints it.

mod client;
#[cfg(test)]
pub(crate) mod fixture;
mod model;
mod source;
mod state;
mod table;

pub(crate) use client::{ask, ask_with, run};
pub(crate) use model::{
    Child, EffectView, GrpcView, HeldView, LimitView, NodeStatus, StoreView, TlsView, Totals,
};
#[cfg(test)]
pub(crate) use model::{Top, Zone};
pub(crate) use source::{held, of_agent, of_fleet, of_zone};
pub(crate) use state::State;
pub(crate) use table::{safe, spelled_bucket, spelled_rate};
