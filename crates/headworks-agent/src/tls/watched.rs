//! Credentials that follow their files: what is good comes into force for new handshakes, what is bad never does.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use headworks_core::message::Tier;
use rustls::{ClientConfig, ServerConfig};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::credentials::{Credentials, Parts};
use super::files::{Content, TlsFiles};
use super::{Cause, Refusals, TlsError};

/// How often the files are looked at. By content, which is right for renames, writes in place and symlinks alike.
const LOOK: Duration = Duration::from_secs(1);

/// A node's credentials, the same for all who hold a clone.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    files: TlsFiles,
    current: ArcSwap<Credentials>,
    reload_errors: AtomicU64,
    refusals: Refusals,
}

/// What there is to know about a node's credentials.
#[derive(Clone, Debug)]
pub struct TlsStatus {
    /// When the certificate in force expires, in seconds since 1970.
    pub not_after: u64,
    /// Its serial number, as in `0A:1B`.
    pub serial: String,
    /// How often new content of the files could not be used.
    pub reload_errors: u64,
    /// Peers refused, by cause.
    pub refused: [(Cause, u64); Cause::ALL.len()],
}

impl Tls {
    /// Reads and checks the files.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let credentials = Credentials::parse(&files, files.read()?, SystemTime::now())?;
        Ok(Self(Arc::new(Inner {
            files,
            current: ArcSwap::from_pointee(credentials),
            reload_errors: AtomicU64::new(0),
            refusals: Refusals::default(),
        })))
    }

    /// Follows the files until `shutdown`. Streams that are open stay as they are.
    pub async fn watch(self, shutdown: CancellationToken) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut seen = Seen::default();
        while shutdown.run_until_cancelled(look.tick()).await.is_some() {
            seen.look(&self);
        }
    }

    /// What to know about them now.
    pub fn status(&self) -> TlsStatus {
        let current = self.0.current.load();
        TlsStatus {
            not_after: current.parts.facts.not_after,
            serial: current.parts.facts.serial.clone(),
            reload_errors: self.0.reload_errors.load(Relaxed),
            refused: self.0.refusals.counts(),
        }
    }

    /// Whether the certificate gives this node a role; peers refuse it where it does not.
    pub fn has_role(&self, tier: Tier) -> bool {
        self.0.current.load().parts.have_role(tier)
    }

    /// Where refused peers are counted.
    pub fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    pub(super) fn tree(&self) -> Arc<ServerConfig> {
        self.0.current.load().parts.tree.clone()
    }

    pub(super) fn grpc(&self) -> Arc<ServerConfig> {
        self.0.current.load().parts.grpc.clone()
    }

    pub(super) fn front(&self) -> Arc<ServerConfig> {
        self.0.current.load().parts.front.clone()
    }

    pub(crate) fn client(&self, tiers: &'static [Tier]) -> Result<ClientConfig, String> {
        self.0.current.load().parts.client(tiers)
    }

    fn install(&self, credentials: Credentials) {
        tracing::info!(
            serial = credentials.parts.facts.serial,
            not_after = credentials.parts.facts.not_after,
            "new certificate in force"
        );
        self.0.current.store(Arc::new(credentials));
    }
}

impl fmt::Debug for Tls {
    /// Without keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.0.files).finish_non_exhaustive()
    }
}

/// What earlier looks found.
#[derive(Default)]
pub(super) struct Seen {
    /// Bad content that may be half of a swap: it is told if the next look finds the same.
    doubtful: Option<Content>,
    /// Bad content that has been told. It is tried again all the same: what is not yet valid will be.
    told: Option<Content>,
    /// Looks in a row that could not read a file.
    unreadable: u32,
}

impl Seen {
    pub(super) fn look(&mut self, tls: &Tls) {
        match tls.0.files.read() {
            Ok(content) => {
                self.unreadable = 0;
                self.weigh(content, tls);
            }
            Err(error) => {
                self.unreadable = self.unreadable.saturating_add(1);
                // A file may be away for a moment while it is replaced; said once, not every second.
                if self.unreadable == 2 {
                    refuse(tls, &error);
                }
            }
        }
    }

    fn weigh(&mut self, content: Content, tls: &Tls) {
        if tls.0.current.load().content == content {
            return;
        }
        match Parts::parse(&tls.0.files, &content, SystemTime::now()) {
            Ok(parts) => tls.install(Credentials { content, parts }),
            Err(_) if self.told.as_ref() == Some(&content) => {}
            Err(error) if self.doubtful.as_ref() == Some(&content) => {
                refuse(tls, &error);
                self.told = Some(content);
            }
            Err(_) => self.doubtful = Some(content),
        }
    }
}

fn refuse(tls: &Tls, error: &TlsError) {
    tls.0.reload_errors.fetch_add(1, Relaxed);
    tracing::error!(%error, "new certificate refused, the old one stays");
}
