//! The limits files of a controller: the limits in force, page by page, and the last file that was refused.

use std::sync::{Arc, PoisonError};

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use headworks_core::limits::{Digest, print};
use serde::{Deserialize, Serialize};

use super::Running;

/// Lines of one page.
const PAGE: usize = 500;

/// The limits in force, as text.
pub(super) struct Printed {
    digest: Digest,
    lines: Arc<[String]>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct Part {
    /// The first line that is wanted, from 0.
    from: usize,
}

#[derive(Debug, Serialize)]
struct Lines<'a> {
    generation: u64,
    digest: String,
    limits: usize,
    /// How many lines there are in all.
    total: usize,
    from: usize,
    lines: &'a [String],
}

/// `GET /console/file/running`: the limits in force as a limits file, without comments.
pub(super) async fn running(State(running): State<Running>, Query(Part { from }): Query<Part>) -> Response {
    let known = running.fleet.ask(|seat, _| (seat.fleet.limits().clone(), seat.fleet.generation())).await;
    let Some((limits, generation)) = known else {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response();
    };
    let lines = running.lines(limits.digest(), || print(&limits));
    // Of a file that became shorter, the last page.
    let from = from.min(lines.len().saturating_sub(1) / PAGE * PAGE);
    let shown = &lines[from..lines.len().min(from + PAGE)];
    let digest = limits.digest().to_string();
    let limits = limits.limits().len();
    Json(Lines { generation, digest, limits, total: lines.len(), from, lines: shown }).into_response()
}

/// `GET /console/file/refused`: the last file that was refused; null if none was.
pub(super) async fn refused(State(running): State<Running>) -> Response {
    Json(running.refusals.tell()).into_response()
}

impl Running {
    /// Printed once for each set of limits: text of megabytes is not made anew for every page of it.
    fn lines(&self, digest: Digest, print: impl FnOnce() -> String) -> Arc<[String]> {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*printed {
            Some(known) if known.digest == digest => known.lines.clone(),
            _ => {
                let lines: Arc<[String]> = print().lines().map(str::to_owned).collect();
                *printed = Some(Printed { digest, lines: lines.clone() });
                lines
            }
        }
    }
}
