//! Agents of this process: what filters share, and the thread on which they are kept current.

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Duration;

use headworks_agent::settings::default_id;
use headworks_agent::tls::{Tls, TlsError};
use headworks_agent::{Agent, Limiter};
use headworks_core::message::Tier;
use tokio::runtime::{Builder, Handle};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::attributes::Unusable;
use crate::config::Connection;
use crate::guard::PANICS;
use crate::stats::Ledger;

/// How often statistics are brought up to date.
const TELLING: Duration = Duration::from_secs(1);
/// How long Envoy's main thread waits for the last report of an agent. No request waits meanwhile.
const FAREWELL: Duration = Duration::from_millis(500);

/// The agents that filters have. A filter holds its own; here they are found by the next one.
static UPLINKS: Mutex<Vec<Weak<Uplink>>> = Mutex::new(Vec::new());
/// The thread that loaded the module, and makes and ends filters.
static MAIN: OnceLock<thread::ThreadId> = OnceLock::new();
/// Envoy only looks at a configuration, and nothing is to be dialled.
static ONLY_LOOKS: AtomicBool = AtomicBool::new(false);

/// Asks for the statistics to be fetched; says whether whoever is asked is still there.
pub type Announce = Box<dyn Fn() -> bool + Send + Sync>;

/// An agent, kept current while a filter has it. It ends with the last one.
pub struct Uplink {
    id: String,
    connection: Connection,
    limiter: Limiter,
    not_utf8: AtomicU64,
    too_long: AtomicU64,
    passed_open: AtomicU64,
    /// As of the last second.
    fails_open: AtomicBool,
    ledger: Mutex<Ledger>,
    announcers: Mutex<Vec<Announce>>,
    /// What keeps the limiter current has failed: its numbers would stay for ever.
    is_broken: AtomicBool,
    leaving: CancellationToken,
    left: Mutex<Option<mpsc::Receiver<()>>>,
}

/// Why a filter has no agent.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Another agent of this process has the same name.
    #[error(
        "agent `{id}` already runs in this Envoy with other settings, and filters still use it: give them all the same zone, aggregators and the \
         rest, or this one an `id` of its own; a new Envoy (hot restart) takes new settings for the old `id`"
    )]
    Conflict {
        /// Its name.
        id: String,
    },
    /// Credentials that cannot be used.
    #[error("filter_config, at `tls`: {0}")]
    Tls(#[from] TlsError),
    /// The system gives no thread, or no more files.
    #[error("cannot start the agent's thread: {0}; see how many threads and files this process may have")]
    Thread(#[from] io::Error),
}

/// What should be rare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oddities {
    /// Values that are no text, and counted as absent.
    pub not_utf8: u64,
    /// Values that are too long, and counted as absent.
    pub too_long: u64,
    /// Requests that passed while the agent failed open.
    pub passed_open: u64,
}

/// Before the first filter: who makes filters, and whether they are to run.
pub fn begin(only_looks: bool) {
    MAIN.get_or_init(|| thread::current().id());
    ONLY_LOOKS.store(only_looks, Relaxed);
}

impl Uplink {
    /// The agent with this connection, which runs already or begins to.
    ///
    /// Two connections are two agents, each of which the fleet knows by its name: filters that still drain requests by earlier
    /// settings go on with theirs.
    pub fn attach(connection: Connection) -> Result<Arc<Self>, AttachError> {
        let mut uplinks = lock(&UPLINKS);
        uplinks.retain(|uplink| uplink.strong_count() > 0);
        let live: Vec<Arc<Self>> = uplinks.iter().filter_map(Weak::upgrade).collect();
        if let Some(same) = live.iter().find(|uplink| uplink.connection == connection) {
            return Ok(same.clone());
        }
        let id = match &connection.id {
            Some(id) if live.iter().any(|uplink| uplink.id == *id) => {
                return Err(AttachError::Conflict { id: id.clone() });
            }
            Some(id) => id.clone(),
            None => numbered_id(),
        };
        let uplink = Self::start(id, connection)?;
        uplinks.push(Arc::downgrade(&uplink));
        Ok(uplink)
    }

    fn start(id: String, connection: Connection) -> Result<Arc<Self>, AttachError> {
        let mut builder = Agent::builder(id.clone(), connection.zone.clone())
            .region(connection.region.clone())
            .aggregators(connection.aggregators.clone())
            .hold(connection.hold);
        if let Some(files) = &connection.tls {
            let tls = Tls::load(files.clone())?;
            if !tls.has_role(Tier::Agent) {
                tracing::warn!(
                    "the certificate lacks the URI spiffe://TRUST-DOMAIN/headworks/agent: aggregators will refuse it"
                );
            }
            builder = builder.tls(tls);
        }
        if let Some(directory) = &connection.state_dir {
            builder = builder.state_dir(directory);
        }
        let agent = builder.build();
        let (leaving, (over, left)) = (CancellationToken::new(), mpsc::channel());
        let uplink = Arc::new(Self {
            id,
            connection,
            limiter: agent.limiter(),
            not_utf8: AtomicU64::new(0),
            too_long: AtomicU64::new(0),
            passed_open: AtomicU64::new(0),
            fails_open: AtomicBool::new(true),
            ledger: Mutex::default(),
            announcers: Mutex::default(),
            is_broken: AtomicBool::new(false),
            leaving: leaving.clone(),
            left: Mutex::new(Some(left)),
        });
        if !ONLY_LOOKS.load(Relaxed) {
            let runtime = runtime()?;
            let running = runtime.spawn(agent.run(leaving));
            let watched = Arc::downgrade(&uplink);
            runtime.spawn(async move {
                if running.await.is_err() {
                    give_up(&watched);
                }
                drop(over);
            });
            runtime.spawn(tell_each_second(Arc::downgrade(&uplink)));
        }
        Ok(uplink)
    }

    /// What decides; nothing if it cannot be kept current any more, and everything is to pass.
    #[inline]
    pub fn limiter(&self) -> Option<&Limiter> {
        (!self.is_broken.load(Relaxed)).then_some(&self.limiter)
    }

    /// Its name in the fleet.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Counts a value that is there and cannot be used.
    pub fn count(&self, why: Unusable) {
        let counter = match why {
            Unusable::NotUtf8 => &self.not_utf8,
            Unusable::TooLong => &self.too_long,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// A request passes: counted if it passes for want of numbers.
    #[inline]
    pub fn passes(&self) {
        if self.fails_open.load(Relaxed) {
            self.passed_open.fetch_add(1, Relaxed);
        }
    }

    /// What was counted since the last call.
    pub fn take_oddities(&self) -> Oddities {
        Oddities {
            not_utf8: self.not_utf8.swap(0, Relaxed),
            too_long: self.too_long.swap(0, Relaxed),
            passed_open: self.passed_open.swap(0, Relaxed),
        }
    }

    /// What there is to tell Envoy's statistics.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    /// From now on `announce` is asked to have statistics fetched, if nobody before it is there any more. So each unit is
    /// counted once, however many filters share the agent.
    pub fn announce_by(&self, announce: Announce) {
        lock(&self.announcers).push(announce);
    }

    /// A thread of its own does this and not Envoy's main thread: it may have a million buckets to sum.
    fn tell(&self) {
        let stats = self.limiter.stats();
        let standing = self.ledger().take_down(&stats);
        self.fails_open.store(standing.fails_open || self.is_broken.load(Relaxed), Relaxed);
        let mut announcers = lock(&self.announcers);
        while announcers.first().is_some_and(|announce| !announce()) {
            drop(announcers.remove(0));
        }
    }
}

/// The last filter is gone: the parents hear what was counted, and that the agent leaves. Envoy's other threads have requests to
/// answer, and wait for nothing.
impl Drop for Uplink {
    fn drop(&mut self) {
        self.leaving.cancel();
        if MAIN.get() == Some(&thread::current().id())
            && let Some(left) = lock(&self.left).take()
        {
            let _ = left.recv_timeout(FAREWELL);
        }
    }
}

impl std::fmt::Debug for Uplink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uplink")
            .field("id", &self.id)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

/// The first agent of a process is called as any agent would be.
fn numbered_id() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    match NUMBER.fetch_add(1, Relaxed) {
        1 => default_id("envoy"),
        number => format!("{}-{number}", default_id("envoy")),
    }
}

fn give_up(uplink: &Weak<Uplink>) {
    PANICS.fetch_add(1, Relaxed);
    if let Some(uplink) = uplink.upgrade() {
        uplink.is_broken.store(true, Relaxed);
        uplink.fails_open.store(true, Relaxed);
        tracing::error!(
            id = uplink.id,
            "the agent has failed, and everything passes from now on: restart Envoy, and report what the log says"
        );
    }
}

async fn tell_each_second(uplink: Weak<Uplink>) {
    let mut second = interval(TELLING);
    second.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        second.tick().await;
        let Some(uplink) = uplink.upgrade() else { return };
        uplink.tell();
    }
}

/// The module's own thread, begun with the first agent.
fn runtime() -> io::Result<Handle> {
    static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);
    let mut running = lock(&RUNTIME);
    if let Some(handle) = &*running {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new().name("headworks".to_owned()).spawn(move || runtime.block_on(pending::<()>()))?;
    *running = Some(handle.clone());
    Ok(handle)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(id: Option<&str>, zone: &str) -> Connection {
        Connection {
            id: id.map(str::to_owned),
            zone: zone.to_owned(),
            region: String::new(),
            // Nobody listens there.
            aggregators: vec!["http://127.0.0.1:1".to_owned()],
            hold: Duration::from_secs(60),
            state_dir: None,
            tls: None,
        }
    }

    #[test]
    fn the_same_connection_is_the_same_agent_until_nobody_has_it() {
        let first = Uplink::attach(connection(None, "shared")).unwrap();
        let second = Uplink::attach(connection(None, "shared")).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let leaving = first.leaving.clone();
        drop(first);
        assert!(!leaving.is_cancelled());
        drop(second);
        assert!(leaving.is_cancelled());
        assert!(!Uplink::attach(connection(None, "shared")).unwrap().leaving.is_cancelled());
    }

    #[test]
    fn other_connections_are_other_agents_with_names_of_their_own() {
        let one = Uplink::attach(connection(None, "one")).unwrap();
        let other = Uplink::attach(connection(None, "other")).unwrap();
        assert_ne!(one.id(), other.id());
        assert!(one.id().starts_with("envoy-"), "{}", one.id());
    }

    #[test]
    fn a_name_that_was_given_is_of_one_agent_at_a_time() {
        let first = Uplink::attach(connection(Some("edge-7"), "here")).unwrap();
        let error = Uplink::attach(connection(Some("edge-7"), "there")).unwrap_err().to_string();
        assert!(error.contains("`edge-7`") && error.contains("`id` of its own"), "{error}");
        drop(first);
        assert_eq!(Uplink::attach(connection(Some("edge-7"), "there")).unwrap().id(), "edge-7");
    }

    #[test]
    fn everything_passes_once_the_agent_has_failed() {
        let uplink = Uplink::attach(connection(None, "failing")).unwrap();
        assert!(uplink.limiter().is_some());
        give_up(&Arc::downgrade(&uplink));
        assert!(uplink.limiter().is_none());
        uplink.passes();
        assert_eq!(uplink.take_oddities().passed_open, 1);
    }

    #[test]
    fn statistics_are_fetched_by_the_first_filter_that_is_still_there() {
        let uplink = Uplink::attach(connection(None, "told")).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let asking = asked.clone();
        uplink.announce_by(Box::new(|| false));
        uplink.announce_by(Box::new(move || asking.fetch_add(1, Relaxed) < usize::MAX));
        uplink.announce_by(Box::new(|| panic!("nobody asks the third one")));
        uplink.tell();
        assert!(asked.load(Relaxed) >= 1);
        assert_eq!(lock(&uplink.announcers).len(), 2);
    }

    #[test]
    fn unusable_values_are_told_once() {
        let uplink = Uplink::attach(connection(None, "unusable")).unwrap();
        uplink.count(Unusable::NotUtf8);
        uplink.count(Unusable::NotUtf8);
        uplink.count(Unusable::TooLong);
        let none = Oddities { not_utf8: 0, too_long: 0, passed_open: 0 };
        assert_eq!(uplink.take_oddities(), Oddities { not_utf8: 2, too_long: 1, ..none });
        assert_eq!(uplink.take_oddities(), none);
    }
}
