//! The embeddable Headworks agent.
//!
//! A [`Limiter`] decides each request in process, by numbers that its uplink keeps current; the request path never
//! waits for the network, and while nothing is heard from above everything passes, or goes on by the last numbers.
//!
//! ```no_run
//! # async fn example() {
//! use headworks_agent::{Agent, Attributes};
//!
//! let agent = Agent::builder("checkout-7", "zone-a").aggregators(["http://127.0.0.1:7100"]).build();
//! let limiter = agent.limiter();
//! tokio::spawn(agent.run(tokio_util::sync::CancellationToken::new()));
//!
//! let verdict = limiter.check(Attributes::new(&[("service", "checkout"), ("caller", "web")]), None);
//! if !verdict.allowed {
//!     // answer 429
//! }
//!
//! // Where the attributes are known beforehand, a decision takes a fraction of that.
//! let mut checkout = limiter.prepare(&[("service", "checkout")]);
//! if !checkout.check(None).allowed {
//!     // answer 429
//! }
//! # }
//! ```

mod agent;
pub mod client_address;
mod clock;
mod exact;
mod limiter;
mod places;
mod records;
pub mod settings;
mod state;
#[cfg(feature = "redis")]
mod store;
pub mod tls;
pub mod told;
pub mod uplink;

pub use agent::{Agent, Builder, HOLD, Standalone, draw_incarnation, log_plan_state, log_shadow_all};
pub use clock::Clock;
pub use exact::Remaining;
pub use headworks_core::attributes::Attributes;
pub use headworks_core::ladder::PlanState;
#[cfg(feature = "redis")]
pub use limiter::SharedLimiter;
pub use limiter::{
    Decisive, Keyed, LimitRef, LimitStats, Limiter, LimiterStats, LinkStats, Prepared, Standing,
    Unanswerable, Verdict,
};
#[cfg(feature = "redis")]
pub use store::{Store, StoreError, StoreSettings, StoreStats, StoreTls};
