//! The aggregator: sums its zone's agents, passes plans on.

use std::net::SocketAddr;
use std::time::Duration;

use headworks_agent::Clock;
use headworks_agent::uplink::{self, Dialer, Parents, Stay};
use headworks_core::message::Tier;
use headworks_core::zone::Zone;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::identity;
use super::ports::{Ports, bind_tree};
use super::security::Security;
use crate::admin::{Admin, AdminPort, AdminSettings};
use crate::cli::AggregatorArgs;
use crate::failure::Failure;
use crate::shutdown::{self, LINGER};
use crate::status;
use crate::tree::{self, Handle, ZoneSeat};

/// How long the last report may take to reach the controllers.
const FAREWELL: Duration = Duration::from_secs(2);

/// What an aggregator is started with.
pub(super) struct Settings {
    pub(super) id: Option<String>,
    pub(super) zone: String,
    pub(super) region: String,
    pub(super) hold: Duration,
    pub(super) listen: SocketAddr,
    /// Where Envoys ask for quotas.
    pub(super) rlqs: Option<SocketAddr>,
    pub(super) admin: AdminSettings,
    pub(super) controllers: Vec<String>,
    pub(super) stay: Stay,
    pub(super) security: Security,
}

/// An aggregator that runs.
pub(super) struct Aggregator {
    pub(super) tree: SocketAddr,
    handle: Handle<ZoneSeat>,
    ports: Ports,
    leaving: CancellationToken,
    uplinks: TaskTracker,
}

/// `headworks aggregator`.
pub(crate) async fn run(args: AggregatorArgs) -> Result<(), Failure> {
    let common = args.common;
    let security = Security::of(&common.tls, Tier::Aggregator)?;
    security.check_tree("aggregator --listen", args.listen)?;
    security.check_parents("aggregator --controllers", &args.controllers)?;
    if let Some(rlqs) = args.rlqs {
        security.check_rlqs("aggregator --rlqs", rlqs)?;
    }
    let admin = args.access.at(args.admin)?;
    security.check_admin("aggregator --admin", admin.address(), admin.has_token())?;
    if common.ends_here("aggregator") {
        return Ok(());
    }
    let stop = shutdown::on_signal()?;
    let aggregator = Aggregator::start(Settings {
        id: common.id,
        zone: args.zone,
        region: args.region,
        hold: common.hold,
        listen: args.listen,
        rlqs: args.rlqs,
        admin,
        controllers: args.controllers,
        stay: args.stay.stay(),
        security,
    })
    .await?;
    stop.cancelled().await;
    shutdown::within(common.grace, aggregator.drain(LINGER)).await;
    Ok(())
}

impl Aggregator {
    pub(super) async fn start(settings: Settings) -> Result<Self, Failure> {
        let tree_listener = bind_tree("aggregator --listen", settings.listen).await?;
        let rlqs = match settings.rlqs {
            Some(address) => Some(bind_tree("aggregator --rlqs", address).await?),
            None => None,
        };
        let admin = AdminPort::bind(["aggregator --admin", "aggregator --metrics"], settings.admin).await?;
        let tree = tree_listener.local_addr()?;
        let identity = identity::of(settings.id, "aggregator", &settings.zone, &settings.region);
        let clock = Clock::new();
        let node = identity.node.clone();
        let zone = Zone::new(identity, settings.controllers.len(), settings.hold, clock.now());
        let seat = ZoneSeat::new(zone, settings.controllers.clone());
        let handle = tree::start("zone", seat, clock)?;
        let dialer = Dialer::of_aggregator(settings.security.tls.clone());
        let mut ports = Ports::new("aggregator", settings.security).in_zone(&settings.zone, &settings.region);
        if let Some(listener) = rlqs {
            ports.rlqs(listener, handle.clone(), settings.hold)?;
        }
        let (asked, witness) = (handle.clone(), ports.witness());
        let answers = Admin::new(ports.readiness(), move || {
            let (asked, witness) = (asked.clone(), witness.clone());
            async move { Some(witness.complete(asked.ask(status::of_zone).await?)) }
        });
        ports.tree(tree_listener, handle.clone())?;
        admin.serve(&ports, answers)?;
        let (leaving, uplinks) = (CancellationToken::new(), TaskTracker::new());
        let parents = settings.controllers.into_iter().map(|controller| Parents {
            node: node.clone(),
            urls: vec![controller],
            stay: settings.stay,
            dialer: dialer.clone(),
        });
        ports.follow_credentials();
        attach(parents, &handle, &ports, &leaving, &uplinks);
        ports.set_ready(true);
        Ok(Self { tree, handle, ports, leaving, uplinks })
    }

    /// Not ready for `linger`; then the last report, a goodbye, and all closed.
    pub(super) async fn drain(self, linger: Duration) {
        self.ports.set_ready(false);
        sleep(linger).await;
        self.leaving.cancel();
        self.handle.leave().await;
        self.uplinks.close();
        let _ = timeout(FAREWELL, self.uplinks.wait()).await;
        self.ports.close().await;
    }
}

/// One uplink to each controller; all of them speak to the owner of the zone.
fn attach(
    controllers: impl Iterator<Item = Parents>,
    handle: &Handle<ZoneSeat>,
    ports: &Ports,
    leaving: &CancellationToken,
    uplinks: &TaskTracker,
) {
    let (events, mut inbox) = mpsc::channel(64);
    for (link, controller) in controllers.enumerate() {
        uplinks.spawn(uplink::keep_attached(link, controller, events.clone(), leaving.clone()));
    }
    let handle = handle.clone();
    ports.spawn(async move {
        while let Some(event) = inbox.recv().await {
            handle.own(event).await;
        }
    });
}
