//! A viewer's stream: server-sent events, each the whole of what it looks at.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout_at};

use super::view::Asked;
use super::watching::Look;
use super::{Console, MOST_VIEWERS};

/// How long a stream goes on. The token is asked for at its beginning: whoever has one that was replaced sees no more after this.
const LONGEST: Duration = Duration::from_secs(600);

/// One viewer. What it holds is free again when its connection ends.
struct Viewer {
    console: Console,
    beat: watch::Receiver<u64>,
    asked: Asked,
    until: Instant,
    _place: OwnedSemaphorePermit,
    _look: Option<Look>,
}

/// `GET /console/events`: what is asked for now, and then with every sample.
pub(super) async fn events(State(console): State<Console>, Query(asked): Query<Asked>) -> Response {
    if let Err(fault) = asked.check() {
        return (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response();
    }
    let Ok(place) = console.places.clone().try_acquire_owned() else {
        let text = format!("{MOST_VIEWERS} viewers look at this controller already; close a page, or wait\n");
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "10")], text).into_response();
    };
    let mut beat = console.beat.clone();
    beat.mark_changed();
    let look = asked.watched().map(|limit| console.watching.look(limit));
    let until = Instant::now() + LONGEST;
    let viewer = Viewer { console, beat, asked, until, _place: place, _look: look };
    let events = stream::unfold(viewer, async |viewer| viewer.next().await);
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

impl Viewer {
    /// The next event. It is made when the connection has room for it, so a slow viewer gets what is newest.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            timeout_at(self.until, self.beat.changed()).await.ok()?.ok()?;
            let event = self.console.render(&self.asked).await;
            if let Some(event) = event {
                return Some((Ok(event), self));
            }
        }
    }
}
