//! The connections to the store, and the breaker: while there are none, nothing is asked.
//!
//! A task of its own connects, sees whether the store really counts, and only then lets requests through. What looks dead
//! (a closed connection, several deadlines missed in a row, a server that lost its role) takes the connections away, and
//! with them all waiting: requests are answered by the limits' `on_store_failure` at once, until the task has reached
//! the store again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    RedisError, RedisResult, ServerErrorKind, TlsCertificates, Value,
};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::script::{self, Bucket, Told};

/// Connections to the server. Requests share them, each in its own order.
const POOL: usize = 2;
/// Requests that may wait to be written, on each.
const QUEUE: usize = 1024;
/// Deadlines missed in a row that mean more than a hiccup.
const MISSES: u32 = 5;
/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(1);
/// How often a store that nobody asks is asked whether it lives.
const PING: Duration = Duration::from_secs(1);
/// Most time between two attempts to reach it. Chosen by chance, so that agents do not come all at once.
const PAUSE: Duration = Duration::from_millis(500);

/// Certificates for a store, in PEM.
#[derive(Clone, Debug)]
pub struct StoreTls {
    /// Who signs the store's certificate; those whom the system trusts without.
    pub ca: Option<Vec<u8>>,
    /// The agent's own certificate and key.
    pub own: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why a store cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No address was given.
    #[error("no address of a store: give one such as redis://127.0.0.1:6379")]
    NoAddress,
    /// Not an address. It is not repeated, since it may hold a password.
    #[error(
        "address {place} is none of a store ({cause}): give one such as redis://127.0.0.1:6379, redis://user:password@host/0, rediss://host or redis+unix:///path"
    )]
    Address {
        /// Which of the addresses, from 1.
        place: usize,
        /// What is wrong with it.
        cause: String,
    },
}

/// How a store is, and what was asked of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Whether it answers at present.
    pub up: bool,
    /// Calls to it.
    pub calls: u64,
    /// Checks that it did not answer within the deadline.
    pub timeouts: u64,
    /// Checks that it answered with an error, or whose connection broke.
    pub errors: u64,
    /// Checks while it was known to be away.
    pub away: u64,
    /// Limits answered without a call, since their bucket was known to be spent.
    pub answered_here: u64,
}

/// A server, by its own name.
struct Server {
    client: Client,
    name: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// Connections that work, and what the server calls the script.
struct Connected {
    pool: [MultiplexedConnection; POOL],
    script: String,
}

#[derive(Default)]
struct Counted {
    calls: AtomicU64,
    timeouts: AtomicU64,
    errors: AtomicU64,
    away: AtomicU64,
}

/// The way to the store.
pub(super) struct Link {
    servers: Vec<Server>,
    tls: Option<StoreTls>,
    probe: Vec<u8>,
    deadline: Duration,
    connected: ArcSwapOption<Connected>,
    next: AtomicU64,
    /// Deadlines missed since the last answer.
    misses: AtomicU32,
    /// A failed request was told in the log, and the store has not been reached anew since.
    told: AtomicBool,
    broken: Notify,
    reached: Notify,
    counted: Counted,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("servers", &self.servers)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn new(
        urls: &[String],
        tls: Option<StoreTls>,
        probe: Vec<u8>,
        deadline: Duration,
    ) -> Result<Self, StoreError> {
        let server = |(place, url): (usize, &String)| {
            let client = url.as_str().into_connection_info().and_then(|info| Server::new(info, tls.as_ref()));
            client.map_err(|error| StoreError::Address { place: place + 1, cause: error.to_string() })
        };
        let servers = urls.iter().enumerate().map(server).collect::<Result<Vec<Server>, _>>()?;
        if servers.is_empty() {
            return Err(StoreError::NoAddress);
        }
        Ok(Self {
            servers,
            tls,
            probe,
            deadline,
            connected: ArcSwapOption::empty(),
            next: AtomicU64::new(0),
            misses: AtomicU32::new(0),
            told: AtomicBool::new(false),
            broken: Notify::new(),
            reached: Notify::new(),
            counted: Counted::default(),
        })
    }

    /// Asks for these buckets at one stroke; `None` if there is no answer, for whatever reason. Does not keep the deadline.
    pub(super) async fn check<'a>(
        &self,
        buckets: impl Iterator<Item = Bucket<'a>> + Clone,
    ) -> Option<Vec<Told>> {
        let Some(connected) = self.connected.load_full() else {
            self.counted.away.fetch_add(1, Relaxed);
            return None;
        };
        self.counted.calls.fetch_add(1, Relaxed);
        let reply = self.send(&connected, &script::command(&connected.script, buckets.clone())).await;
        self.misses.store(0, Relaxed);
        let told = reply.map(|reply| script::told(&reply, buckets.count()));
        match told {
            Ok(Some(told)) => Some(told),
            Ok(None) => self.failed(&connected, &"an answer that makes no sense", false),
            Err(error) => self.failed(&connected, &error, ends_it(&error)),
        }
    }

    /// The request was given up at its deadline.
    pub(super) fn missed(&self) {
        self.counted.timeouts.fetch_add(1, Relaxed);
        if self.misses.fetch_add(1, Relaxed) + 1 >= MISSES
            && let Some(connected) = self.connected.load_full()
        {
            self.breaks(&connected, &"it misses every deadline");
        }
    }

    /// Waits until the store answers.
    pub(super) async fn reached(&self) {
        loop {
            let reached = self.reached.notified();
            if self.connected.load().is_some() {
                return;
            }
            reached.await;
        }
    }

    /// Keeps connected, for ever.
    pub(super) async fn keep(&self) {
        let mut is_known_to_be_away = false;
        for server in self.servers.iter().cycle() {
            match self.connect(server).await {
                Ok(connected) => {
                    tracing::info!(store = server.name, "the store of exact limits answers");
                    is_known_to_be_away = false;
                    self.stay(connected).await;
                }
                Err(error) if !is_known_to_be_away => {
                    tracing::warn!(
                        store = server.name,
                        "the store of exact limits is away, and limits answer by their on_store_failure: {error}"
                    );
                    is_known_to_be_away = true;
                }
                Err(error) => tracing::debug!(store = server.name, "the store is still away: {error}"),
            }
            sleep(PAUSE.mul_f64(fastrand::f64())).await;
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let Counted { calls, timeouts, errors, away } = &self.counted;
        StoreStats {
            up: self.connected.load().is_some(),
            calls: calls.load(Relaxed),
            timeouts: timeouts.load(Relaxed),
            errors: errors.load(Relaxed),
            away: away.load(Relaxed),
            answered_here: 0,
        }
    }

    /// Lets requests through until the connections break.
    async fn stay(&self, connected: Connected) {
        let connected = Arc::new(connected);
        self.misses.store(0, Relaxed);
        self.told.store(false, Relaxed);
        self.connected.store(Some(connected.clone()));
        self.reached.notify_waiters();
        loop {
            tokio::select! {
                () = self.broken.notified() => {}
                () = sleep(PING) => self.ping(&connected).await,
            }
            if self.connected.load().is_none() {
                return;
            }
        }
    }

    /// Nobody may be asking, and the next to ask should not be the one to find out.
    async fn ping(&self, connected: &Arc<Connected>) {
        for connection in &connected.pool {
            let ping = redis::cmd("PING");
            match timeout(self.deadline, call(&mut connection.clone(), &ping)).await {
                Err(_) => self.missed(),
                Ok(Err(error)) if ends_it(&error) => self.breaks(connected, &error),
                Ok(_) => {}
            }
        }
    }

    async fn connect(&self, server: &Server) -> RedisResult<Connected> {
        let connected = Connected::within(CONNECT, server).await?;
        match self.probe(&connected).await {
            Ok(()) => Ok(connected),
            Err(error) => {
                // A node of a cluster that has other keys says who has these.
                let Some((host, port)) = redirected(&error) else { return Err(error) };
                let server = server.moved(host, port, self.tls.as_ref())?;
                let connected = Connected::within(CONNECT, &server).await?;
                self.probe(&connected).await?;
                Ok(connected)
            }
        }
    }

    /// Whether the store counts, and in time: one that takes no writes is as good as away.
    async fn probe(&self, connected: &Connected) -> RedisResult<()> {
        let probe = script::probe(&connected.script, &self.probe);
        for connection in &connected.pool {
            let reply = timeout(self.deadline, call(&mut connection.clone(), &probe)).await;
            reply.map_err(|_| RedisError::from((ErrorKind::Io, "it takes longer than the deadline")))??;
        }
        Ok(())
    }

    async fn send(&self, connected: &Connected, command: &Cmd) -> RedisResult<Value> {
        let next = self.next.fetch_add(1, Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "the remainder is small")]
        let mut connection = connected.pool[(next % POOL as u64) as usize].clone();
        match call(&mut connection, command).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                // Somebody flushed the scripts.
                call(&mut connection, &load()).await?;
                call(&mut connection, command).await
            }
            reply => reply,
        }
    }

    fn failed<T>(
        &self,
        connected: &Arc<Connected>,
        cause: &dyn std::fmt::Display,
        ends_it: bool,
    ) -> Option<T> {
        self.counted.errors.fetch_add(1, Relaxed);
        if ends_it {
            self.breaks(connected, cause);
        } else if !self.told.swap(true, Relaxed) {
            tracing::warn!(
                "the store of exact limits refuses a check; further ones are only counted: {cause}"
            );
        }
        None
    }

    /// Takes these connections away, if that was not done yet.
    fn breaks(&self, connected: &Arc<Connected>, cause: &dyn std::fmt::Display) {
        let seen = self.connected.compare_and_swap(connected, None);
        if seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, connected)) {
            tracing::warn!("the store of exact limits went away: {cause}");
            self.broken.notify_one();
        }
    }
}

impl Server {
    fn new(info: ConnectionInfo, tls: Option<&StoreTls>) -> RedisResult<Self> {
        let name = info.addr().to_string();
        let client = match tls {
            Some(tls) if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) => {
                Client::build_with_tls(info, tls.certificates())?
            }
            _ => Client::open(info)?,
        };
        Ok(Self { client, name })
    }

    /// The same with another address.
    fn moved(&self, host: &str, port: u16, tls: Option<&StoreTls>) -> RedisResult<Self> {
        let info = self.client.get_connection_info().clone();
        let address = match info.addr() {
            // A node that does not know its own name means the one by which it was asked.
            ConnectionAddr::Tcp(same, _) if is_nameless(host) => ConnectionAddr::Tcp(same.clone(), port),
            ConnectionAddr::TcpTls { host: same, insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: if is_nameless(host) { same } else { host }.to_owned(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host.to_owned(), port),
        };
        Self::new(info.set_addr(address), tls)
    }
}

/// Host and port of the node that has the key.
fn redirected(error: &RedisError) -> Option<(&str, u16)> {
    let (address, _slot) = error.redirect_node()?;
    let (host, port) = address.rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

fn is_nameless(host: &str) -> bool {
    matches!(host, "" | "?")
}

impl StoreTls {
    fn certificates(&self) -> TlsCertificates {
        let client_tls = self
            .own
            .clone()
            .map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
        TlsCertificates { client_tls, root_cert: self.ca.clone() }
    }
}

impl Connected {
    async fn within(most: Duration, server: &Server) -> RedisResult<Self> {
        let late = |_| RedisError::from((ErrorKind::Io, "it takes too long to connect"));
        timeout(most, Self::to(server)).await.map_err(late)?
    }

    async fn to(server: &Server) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            // Whoever asks has a deadline of its own, and a timer less to wind.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        let connect = || server.client.get_multiplexed_async_connection_with_config(&config);
        let pool = [connect().await?, connect().await?];
        let mut script = String::new();
        for connection in &pool {
            script = load().query_async(&mut connection.clone()).await?;
        }
        Ok(Self { pool, script })
    }
}

/// What the server answers; an error of its own is one.
async fn call(connection: &mut MultiplexedConnection, command: &Cmd) -> RedisResult<Value> {
    connection.send_packed_command(command).await?.extract_error()
}

fn load() -> Cmd {
    let mut load = redis::cmd("SCRIPT");
    load.arg("LOAD").arg(script::CHECK);
    load
}

/// Whether it means that the connections are of no use: they are broken, or the server will say the same to everybody.
fn ends_it(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, Moved, NoPerm, ReadOnly};
    let of_server = matches!(
        error.kind(),
        ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | Moved | NoPerm | ReadOnly)
    );
    of_server
        || error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(error.code(), Some("OOM" | "NOAUTH" | "BUSY"))
}
