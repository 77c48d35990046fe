//! Bounds: what one server allows its clients.

use std::time::Duration;

/// The largest request body that any route reads.
pub(crate) const MAX_BODY_BYTES: u64 = 64 * 1024;

/// What one server allows its clients; each bound names the failure that it prevents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Connections open at once. At the bound no more are accepted until one ends, so that a flood fills the
    /// kernel's queue and not this process's descriptors and memory.
    pub(crate) connections: usize,
    /// Time from the opening of a connection, or from its last answer, until the next head is complete. Closes
    /// connections that send nothing and those that send a byte now and then; long enough that pools of clients
    /// which ask every few seconds keep theirs.
    pub(crate) silence: Duration,
    /// Time to an answer for a request with a body: ends bodies that trickle in.
    pub(crate) body: Duration,
    /// Time that an answer may wait for its reader: ends clients that ask and never read.
    pub(crate) unread: Duration,
    /// Bytes of a request's head, and of what is buffered for it; more gets 431. At most 100 headers fit too.
    pub(crate) head_bytes: usize,
    /// Bytes of a request's body; more gets 413.
    pub(crate) body_bytes: u64,
    /// Requests at once on one connection that speaks gRPC, and what each of them may send before it is read.
    pub(crate) streams: u32,
    pub(crate) window_bytes: u32,
}

impl Bounds {
    /// For gRPC: proxies keep a connection or two from each of their threads, with many requests on each.
    pub(crate) fn for_grpc() -> Self {
        Self { connections: 1000, head_bytes: 16 * 1024, ..Self::default() }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 10_000,
            silence: Duration::from_secs(25),
            body: Duration::from_secs(10),
            unread: Duration::from_secs(25),
            head_bytes: 32 * 1024,
            body_bytes: MAX_BODY_BYTES,
            streams: 100,
            window_bytes: 64 * 1024,
        }
    }
}
