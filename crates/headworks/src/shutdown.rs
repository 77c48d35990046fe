//! How a process ends: a signal asks, a grace period bounds, a second signal aborts.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a node that is not ready any more still serves, so that those who send to it can notice.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// The first SIGINT or SIGTERM cancels the token; a second one ends the process at once.
pub(crate) fn on_signal() -> std::io::Result<CancellationToken> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let token = CancellationToken::new();
    let asked = token.clone();
    tokio::spawn(async move {
        let mut next = async || tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} };
        next().await;
        tracing::info!("shutting down; a second signal aborts");
        asked.cancel();
        next().await;
        tracing::warn!("aborted by a second signal");
        std::process::exit(1);
    });
    Ok(token)
}

/// Runs the drain, but not beyond the grace period.
pub(crate) async fn within(grace: Duration, drain: impl Future<Output = ()>) {
    if timeout(grace, drain).await.is_err() {
        tracing::warn!(?grace, "grace period is over; leaving with connections open");
    }
}
