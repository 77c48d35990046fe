//! Fronts: how requests reach an agent's limiter.

mod answer;
mod http;
mod query;
mod remaining;
mod stats;

pub(crate) use http::HttpFront;
