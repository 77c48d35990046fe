//! The agent: decides requests for others, over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use headworks_agent::settings::default_id;
use headworks_agent::uplink::Stay;
use headworks_agent::{Agent, Limiter, LimiterStats, SharedLimiter, Store};
use headworks_core::message::Tier;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::ports::Ports;
use super::security::Security;
use super::standalone::OwnLimits;
use crate::admin::{Admin, AdminPort, AdminSettings};
use crate::cli::AgentArgs;
use crate::failure::Failure;
use crate::front::{Decider, GrpcCounts, GrpcFront, HttpFront, ProxyArgs};
use crate::serve::{self, Listener};
use crate::shutdown::{self, LINGER};
use crate::status;
use crate::traces::Traces;

/// How long an agent that starts waits for its store.
const STORE_AT_START: Duration = Duration::from_secs(1);

/// What an agent is started with.
pub(super) struct Settings {
    pub(super) id: Option<String>,
    pub(super) zone: String,
    pub(super) region: String,
    pub(super) hold: Duration,
    pub(super) aggregators: Vec<String>,
    pub(super) stay: Stay,
    pub(super) state_dir: Option<PathBuf>,
    /// Without a control plane.
    pub(super) own_limits: Option<OwnLimits>,
    /// Counts exact limits for many agents; each counts by itself without.
    pub(super) store: Option<Store>,
    /// Where spans of decisions go.
    pub(super) traces: Option<String>,
    pub(super) http: SocketAddr,
    pub(super) http_unix: Option<PathBuf>,
    /// How proxies ask.
    pub(super) proxy: ProxyArgs,
    pub(super) admin: AdminSettings,
    pub(super) security: Security,
}

/// An agent that runs.
pub(super) struct AgentNode {
    pub(super) limiter: Limiter,
    pub(super) http: SocketAddr,
    ports: Ports,
    leaving: CancellationToken,
    uplink: JoinHandle<()>,
    traces: Option<Traces>,
}

/// `headworks agent`.
pub(crate) async fn run(args: AgentArgs) -> Result<(), Failure> {
    let common = args.common;
    let security = Security::of(&common.tls, Tier::Agent)?
        .with_http_tls(args.http_tls)
        .with_grpc_tls(args.proxy.grpc_tls);
    security.check_parents("agent --aggregators", &args.aggregators)?;
    args.traces.iter().try_for_each(|url| security.check_traces("agent --traces", url))?;
    let own_limits = args.limits.filter(|_| args.standalone).map(OwnLimits::load).transpose()?;
    let store = args.store.open()?;
    let admin = args.access.at(args.admin)?;
    security.check_admin("agent --admin", admin.address(), admin.has_token())?;
    if common.ends_here("agent") {
        return Ok(());
    }
    let stop = shutdown::on_signal()?;
    let agent = AgentNode::start(Settings {
        id: common.id,
        // Whoever stands alone may have no zone.
        zone: args.zone.unwrap_or_else(|| "standalone".to_owned()),
        region: args.region,
        hold: common.hold,
        aggregators: args.aggregators,
        stay: args.stay.stay(),
        state_dir: args.state_dir,
        own_limits,
        store,
        traces: args.traces,
        http: args.http,
        http_unix: args.http_unix,
        proxy: args.proxy,
        admin,
        security,
    })
    .await?;
    stop.cancelled().await;
    shutdown::within(common.grace, agent.drain(LINGER)).await;
    Ok(())
}

impl AgentNode {
    pub(super) async fn start(settings: Settings) -> Result<Self, Failure> {
        let http_listener = serve::bind_tcp("agent --http", settings.http).await?;
        let admin = AdminPort::bind(["agent --admin", "agent --metrics"], settings.admin).await?;
        let unix = settings.http_unix.map(|path| serve::bind_unix("agent --http-unix", &path)).transpose()?;
        let grpc = GrpcPorts::bind(&settings.proxy).await?;
        let http = http_listener.tcp_address()?;
        let node = settings.id.unwrap_or_else(|| default_id("agent"));
        let ports = Ports::new("agent", settings.security.clone()).in_zone(&settings.zone, &settings.region);
        let traces = settings.traces.map(|url| Traces::to(&url, &node, &settings.zone)).transpose()?;
        let mut builder = Agent::builder(node.clone(), settings.zone)
            .region(settings.region)
            .aggregators(settings.aggregators)
            .stay(settings.stay)
            .hold(settings.hold);
        if let Some(directory) = settings.state_dir {
            builder = builder.state_dir(directory);
        }
        if let Some(tls) = settings.security.tls {
            builder = builder.tls(tls);
        }
        if let Some(own) = &settings.own_limits {
            builder = builder.standalone(own.in_force());
        }
        let agent = builder.build();
        let limiter = agent.limiter();
        let witness = ports.witness();
        let shared = settings.store.map(|store| share(&limiter, store, &ports));
        let authz = settings.proxy.authz();
        let front = HttpFront::new(limiter.clone(), shared.clone(), ports.readiness())
            .traced(traces.clone())
            .deriving(authz.derived.clone());
        ports.http("http", http_listener, front.clone());
        if let Some(unix) = unix {
            ports.http("http-unix", unix, front);
        }
        let grpc_counts = match grpc.is_none() {
            true => None,
            false => {
                let counts: Arc<GrpcCounts> = Arc::default();
                let decider = Decider::new(limiter.clone(), shared.clone());
                let (front, readiness) = GrpcFront::new(&decider, authz, &counts)?;
                grpc.serve(&ports, &front);
                ports.spawn(readiness.follow(ports.readiness()));
                Some(counts)
            }
        };
        let sampler = Sampler::start(limiter.clone(), &ports);
        let load_errors = settings.own_limits.as_ref().map(OwnLimits::load_errors).unwrap_or_default();
        let counted = shared.clone();
        let answers = Admin::new(ports.readiness(), move || {
            let status = witness.complete(sampler.status(&node));
            let limits_load_errors = load_errors.load(Relaxed);
            let store = counted.as_ref().map(|shared| shared.store_stats().into());
            let grpc = grpc_counts.as_ref().map(|counts| counts.read()).unwrap_or_default();
            let grpc = grpc.into_iter().map(status::GrpcView::from).collect();
            async move { Some(status::NodeStatus { limits_load_errors, store, grpc, ..status }) }
        });
        admin.serve(&ports, answers)?;
        if let Some(own) = settings.own_limits {
            own.follow(&ports);
        }
        let leaving = CancellationToken::new();
        let uplink = tokio::spawn(agent.run(leaving.clone()));
        if let Some(shared) = &shared {
            // The first requests should be counted; a store that is away must not keep an agent from its service.
            shared.is_connected_within(STORE_AT_START).await;
        }
        ports.set_ready(true);
        Ok(Self { limiter, http, ports, leaving, uplink, traces })
    }

    /// Not ready for `linger`, while requests are still answered; then no more of them, the last report, and closed.
    pub(super) async fn drain(self, linger: Duration) {
        self.ports.set_ready(false);
        sleep(linger).await;
        self.ports.close().await;
        self.leaving.cancel();
        let _ = self.uplink.await;
        if let Some(traces) = self.traces {
            let _ = spawn_blocking(move || traces.end()).await;
        }
    }
}

/// The listeners for proxies.
struct GrpcPorts {
    tcp: Option<Listener>,
    unix: Option<Listener>,
}

impl GrpcPorts {
    async fn bind(args: &ProxyArgs) -> Result<Self, Failure> {
        let tcp = match args.grpc {
            Some(address) => Some(serve::bind_tcp("agent --grpc", address).await?),
            None => None,
        };
        let unix = args.grpc_unix.as_ref().map(|path| serve::bind_unix("agent --grpc-unix", path));
        Ok(Self { tcp, unix: unix.transpose()? })
    }

    fn is_none(&self) -> bool {
        self.tcp.is_none() && self.unix.is_none()
    }

    fn serve(self, ports: &Ports, front: &GrpcFront) {
        for (what, listener) in [("grpc", self.tcp), ("grpc-unix", self.unix)] {
            if let Some(listener) = listener {
                ports.grpc(what, listener, front.clone());
            }
        }
    }
}

/// The same limiter with exact limits in a store, which it keeps connected to while the ports are open.
fn share(limiter: &Limiter, store: Store, ports: &Ports) -> SharedLimiter {
    let shared = SharedLimiter::new(limiter.clone(), store);
    let (running, closing) = (shared.clone(), ports.closing());
    ports.spawn(async move { running.run(closing).await });
    shared
}

/// Remembers an agent's counts of a second or two ago, so that rates can be told.
#[derive(Clone)]
struct Sampler {
    limiter: Limiter,
    /// The last two samples, the older first.
    samples: Arc<Mutex<[(Instant, LimiterStats); 2]>>,
}

impl Sampler {
    fn start(limiter: Limiter, ports: &Ports) -> Self {
        let first = (Instant::now(), limiter.stats());
        let sampler = Self { limiter, samples: Arc::new(Mutex::new([first.clone(), first])) };
        let (sampling, closing) = (sampler.clone(), ports.closing());
        ports.spawn(async move {
            let mut second = interval(Duration::from_secs(1));
            second.set_missed_tick_behavior(MissedTickBehavior::Skip);
            while closing.run_until_cancelled(second.tick()).await.is_some() {
                sampling.sample();
            }
        });
        sampler
    }

    fn sample(&self) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.swap(0, 1);
        samples[1] = (Instant::now(), self.limiter.stats());
    }

    fn status(&self, node: &str) -> status::NodeStatus {
        let (then, before) = self.samples.lock().unwrap_or_else(PoisonError::into_inner)[0].clone();
        status::of_agent(node, &before, &self.limiter.stats(), then.elapsed().as_secs_f64())
    }
}
