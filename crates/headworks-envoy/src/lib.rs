//! The Headworks agent inside Envoy 1.40: a dynamic module.
//!
//! Each request is decided in the worker thread that has it, by the same `Limiter` as in every agent; a thread of the module's own
//! keeps the limiter current. Whatever goes wrong here, the request passes: a fault of the limiter must not become one of
//! the service.
//!
//! The way of a request: `abi` hands it to a [`filter::Filter`], which makes [`attributes`] of what the configuration names, asks
//! the limiter, and words an [`answer`] where one is refused. Filters with the same [`config::Connection`] share an [`uplink`]. What was
//! counted goes to Envoy's statistics once a second ([`stats`]).

#[cfg(panic = "abort")]
compile_error!("a panic here must let the request pass, and not end Envoy: build with panic = \"unwind\"");

// Nothing in a test could be linked with the functions that Envoy has.
#[cfg(not(test))]
mod abi;
pub mod answer;
pub mod attributes;
pub mod config;
pub mod filter;
pub mod guard;
pub mod stats;
pub mod uplink;
