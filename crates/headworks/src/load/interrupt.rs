//! Ctrl-C: ends a run early.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The interrupts of one run, heard from its making on, so that none falls between two waits.
pub(super) struct Interrupt(Option<Signal>);

impl Interrupt {
    pub(super) fn new() -> Self {
        // Where none can be heard, the system's own way of ending the process holds.
        Self(signal(SignalKind::interrupt()).ok())
    }

    /// Waits for the next one; safe to drop and call again.
    pub(super) async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => pending().await,
        }
    }
}
