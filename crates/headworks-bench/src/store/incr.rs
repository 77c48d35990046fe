//! The simplest limiter over Redis: a counter for each key that expires.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};

use super::Competitor;

pub(super) const NAME: &str = "redis INCR+EXPIRE";

/// As many connections as Headworks has.
const POOL: usize = 2;

pub(super) struct Counter {
    pool: [MultiplexedConnection; POOL],
    next: AtomicUsize,
}

impl Counter {
    pub(super) async fn connect(url: &str) -> io::Result<Self> {
        let client = Client::open(url).map_err(io::Error::other)?;
        let config = AsyncConnectionConfig::new().set_pipeline_buffer_size(1024);
        let connect = async || client.get_multiplexed_async_connection_with_config(&config).await;
        let pool = [connect().await.map_err(io::Error::other)?, connect().await.map_err(io::Error::other)?];
        Ok(Self { pool, next: AtomicUsize::new(0) })
    }
}

impl Competitor for Counter {
    fn check<'a>(&'a self, key: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        let mut connection = self.pool[self.next.fetch_add(1, Relaxed) % POOL].clone();
        Box::pin(async move {
            let mut both = redis::pipe();
            both.cmd("INCR").arg(key).cmd("EXPIRE").arg(key).arg(60).ignore();
            let counted: redis::RedisResult<(u64,)> = both.query_async(&mut connection).await;
            counted.is_ok_and(|(count,)| count > 0)
        })
    }
}
