//! Fronts: how requests reach an agent's limiter.

mod answer;
#[cfg(test)]
mod fuzz;
mod http;
mod query;
mod remaining;
mod stats;

pub(crate) use http::HttpFront;
