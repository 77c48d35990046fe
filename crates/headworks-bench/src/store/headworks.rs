//! Headworks: an exact limit, counted in Redis.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use headworks_agent::{Agent, Attributes, SharedLimiter, Standing, Store, StoreSettings};
use headworks_core::limits::parse;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Competitor;

pub(super) const NAME: &str = "headworks exact";

pub(super) struct Shared(SharedLimiter);

impl Shared {
    pub(super) async fn connect(url: &str) -> io::Result<Self> {
        let text = "limits: [{name: each, per: [key], rate: 1000000/second, enforcement: exact}]";
        let limits = parse(text).map_err(|faults| io::Error::other(faults.to_string()))?;
        let (_, limits) = watch::channel((1, Arc::new(limits)));
        let limiter = Agent::builder("bench", "here").standalone(limits).build().limiter();
        let settings = StoreSettings {
            urls: vec![url.to_owned()],
            prefix: "bench".to_owned(),
            // What is measured is how many, not how soon.
            deadline: Duration::from_secs(1),
            tls: None,
        };
        let shared = SharedLimiter::new(limiter, Store::new(settings).map_err(io::Error::other)?);
        let running = shared.clone();
        tokio::spawn(async move { running.run(CancellationToken::new()).await });
        if shared.is_connected_within(Duration::from_secs(5)).await {
            return Ok(Self(shared));
        }
        Err(io::Error::other("redis-server does not answer"))
    }
}

impl Competitor for Shared {
    fn check<'a>(&'a self, key: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            let verdict = self.0.check(Attributes::new(&[("key", key)]), None).await;
            // One that the store did not count is none.
            let counted = verdict.decisive.is_some_and(|by| matches!(by.standing, Standing::Exact(_)));
            verdict.allowed && counted
        })
    }
}
