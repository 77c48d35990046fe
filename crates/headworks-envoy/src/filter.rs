//! One filter of a configuration: decides the requests that come by.

use std::sync::Arc;

use headworks_agent::{Attributes, Limiter};

use crate::answer::Refusal;
use crate::attributes::{self, Attribute, Request};
use crate::config::Config;
use crate::uplink::{AttachError, Uplink};

/// A filter. All of Envoy's threads use it at once.
#[derive(Debug)]
pub struct Filter {
    attributes: Vec<Attribute>,
    uplink: Arc<Uplink>,
}

impl Filter {
    /// A filter of this configuration, with the agent that others of the same connection have, or with a new one.
    pub fn new(config: Config) -> Result<Self, AttachError> {
        let uplink = Uplink::attach(config.connection)?;
        Ok(Self { attributes: config.attributes, uplink })
    }

    /// The agent behind it.
    pub fn uplink(&self) -> &Arc<Uplink> {
        &self.uplink
    }

    /// Decides a request: nothing if it passes. Waits for nobody.
    pub fn decide(&self, request: &impl Request) -> Option<Refusal> {
        let refusal = self.uplink.limiter().and_then(|limiter| self.decide_by(limiter, request));
        if refusal.is_none() {
            self.uplink.passes();
        }
        refusal
    }

    fn decide_by(&self, limiter: &Limiter, request: &impl Request) -> Option<Refusal> {
        let pairs = attributes::of(&self.attributes, request, |why| self.uplink.count(why));
        let verdict = limiter.check(Attributes::new(&pairs), None);
        if verdict.allowed {
            return None;
        }
        let limit = verdict.limit().and_then(|limit| limiter.limit(limit));
        Some(Refusal::of(&verdict, limit.as_deref(), fastrand::f64()))
    }
}
