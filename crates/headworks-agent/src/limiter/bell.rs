//! What a decision may need beyond its records: the time, and a bell that wakes the uplink.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use headworks_core::units::Moment;
use tokio::sync::Notify;

use crate::Clock;

/// Wakes the uplink when an allowance is spent.
#[derive(Debug)]
pub(super) struct Bell {
    clock: Clock,
    spent: Notify,
    /// The uplink was woken already, and has not come round since.
    woken: AtomicBool,
}

impl Bell {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, spent: Notify::new(), woken: AtomicBool::new(false) }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Now: read only where an allowance is spent.
    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Wakes the uplink, once until it comes round: a flood must not keep it busy.
    #[cold]
    pub(super) fn ring(&self) {
        if !self.woken.swap(true, Relaxed) {
            self.spent.notify_one();
        }
    }

    /// Waits until it is rung.
    pub(super) async fn rung(&self) {
        self.spent.notified().await;
    }

    /// From now on it may be rung again.
    pub(super) fn rest(&self) {
        self.woken.store(false, Relaxed);
    }
}
