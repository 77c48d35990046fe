//! Fronts: how requests reach an agent's limiter.

mod answer;
#[cfg(test)]
mod fuzz;
mod http;
mod per_second;
mod query;
mod stats;

pub(crate) use http::HttpFront;
