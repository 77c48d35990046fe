//! Fronts: how requests reach an agent's limiter.

mod answer;
mod args;
mod client;
mod decider;
mod derived;
#[cfg(test)]
mod fuzz;
mod grpc;
mod http;
mod per_second;
mod query;
mod stand_in;
mod stats;

pub(crate) use args::ProxyArgs;
pub(crate) use client::{Network, Trust};
pub(crate) use decider::Decider;
pub(crate) use derived::{Derived, FromHeader, attribute};
pub(crate) use grpc::{AuthzSettings, Fact, GrpcCounts, GrpcFront};
pub(crate) use http::HttpFront;
