//! The console: what a controller sees, as a page in a browser.
//!
//! The thread that owns the fleet is asked once a second, however many look ([`pulse`]), and besides every ten seconds for the trial
//! of each limit whose page is in view; what it told is kept on a [`board`], from
//! which each viewer is sent the part that it asked for, whole each time ([`view`], [`stream`]). The page itself ([`assets`])
//! holds no data, and loads nothing from elsewhere.

mod assets;
mod board;
mod file;
mod pulse;
mod refused;
mod sample;
mod series;
mod stream;
mod view;
mod watching;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::FromRef;
use axum::middleware::map_response;
use axum::response::Redirect;
use axum::routing::get;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::tree::{FleetSeat, Handle};
use board::Board;
use file::Printed;
use sample::Sample;
use view::Asked;
use watching::Watching;

pub(crate) use assets::is_asset;
pub(crate) use refused::Refusals;

/// Viewers at once: each has a stream, and a page that is made for it each second.
const MOST_VIEWERS: usize = 64;

/// What all viewers share.
#[derive(Clone)]
struct Console {
    board: Arc<Mutex<Board>>,
    /// Changes with each sample; closed when the node shuts down, so that streams end.
    beat: watch::Receiver<u64>,
    places: Arc<Semaphore>,
    watching: Watching,
    running: Running,
}

/// Where the limits in force, and those refused, are read from.
#[derive(Clone)]
struct Running {
    fleet: Handle<FleetSeat>,
    refusals: Arc<Refusals>,
    printed: Arc<std::sync::Mutex<Option<Printed>>>,
}

impl FromRef<Console> for Running {
    fn from_ref(console: &Console) -> Self {
        console.running.clone()
    }
}

impl Console {
    /// An event with what is asked for. It is made beside the threads that serve children, one at a time: among a hundred
    /// thousand limits it takes long to search and sort.
    async fn render(&self, asked: &Asked) -> Option<Bytes> {
        let mut board = self.board.clone().lock_owned().await;
        if let Some(told) = board.told(asked) {
            return Some(told);
        }
        let asked = asked.clone();
        spawn_blocking(move || board.render(&asked)).await.ok()?
    }

    /// Takes in a sample, in the same way.
    async fn take(&self, sample: Sample, at: f64) {
        let (refusals, mut board) = (self.running.refusals.summary(), self.board.clone().lock_owned().await);
        // Nothing is lost but this sample where it fails.
        let _ = spawn_blocking(move || board.take(sample, refusals, at)).await;
    }
}

/// The routes of a controller's console, and the task that feeds it until `closing`.
pub(crate) fn start(
    fleet: Handle<FleetSeat>,
    refusals: Arc<Refusals>,
    closing: CancellationToken,
) -> (Router, impl Future<Output = ()>) {
    let (beats, beat) = watch::channel(0);
    let console = Console {
        board: Arc::default(),
        beat,
        places: Arc::new(Semaphore::new(MOST_VIEWERS)),
        watching: Watching::default(),
        running: Running { fleet, refusals, printed: Arc::default() },
    };
    let routes = Router::new()
        .route("/", get(async || Redirect::temporary(assets::PAGE)))
        .route("/console/events", get(stream::events))
        .route("/console/file/running", get(file::running))
        .route("/console/file/refused", get(file::refused))
        .with_state(console.clone())
        .merge(assets::routes())
        .layer(map_response(assets::guard));
    (routes, pulse::run(console, beats, closing))
}
