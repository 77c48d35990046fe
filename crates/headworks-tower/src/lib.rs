//! Headworks as a tower layer.
//!
//! A [`HeadworksLayer`] lets each request be decided by a [`Limiter`](headworks_agent::Limiter), which holds it to the limits of
//! the whole fleet, and answers those that are refused: 429 with `Retry-After` to HTTP, and to gRPC a status `RESOURCE_EXHAUSTED`
//! that tells when to come back. All that is made of one layer, or of its clones, counts together: services, connections,
//! routers.
//!
//! ```
//! use headworks_agent::Agent;
//! use headworks_tower::{Answers, HeadworksLayer};
//!
//! # fn example() -> HeadworksLayer<impl headworks_tower::Describe> {
//! let agent = Agent::builder("checkout-7", "zone-a").aggregators(["http://127.0.0.1:7100"]).build();
//! let layer = HeadworksLayer::new(agent.limiter(), |request, attributes| {
//!     attributes.push("service", "checkout");
//!     attributes.push("path", request.uri.path());
//!     attributes.push_header("caller", &request.headers, "x-caller");
//! })
//! .answering(Answers { rate_limit_fields: true, ..Answers::default() });
//! // tokio::spawn(agent.run(shutdown)), and then for axum Router::new().….layer(layer), for tonic Server::builder().layer(layer)
//! # layer
//! # }
//! ```
//!
//! Limits in shadow count, and let everything pass.

mod answer;
mod attributes;
mod fields;
mod future;
mod layer;
mod service;

pub use answer::{Answers, Refused};
pub use attributes::AttributeList;
pub use future::ResponseFuture;
pub use layer::{Describe, HeadworksLayer};
pub use service::Headworks;
