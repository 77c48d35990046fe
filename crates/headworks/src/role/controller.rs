//! The controller: computes the fleet's headrooms from a limits file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headworks_agent::Clock;
use headworks_core::fleet::Fleet;
use headworks_core::limits::LimitSet;
use headworks_core::message::Tier;
use tokio::time::sleep;

use super::identity;
use super::ports::{Ports, bind_tree};
use super::security::Security;
use crate::admin::{Admin, AdminPort, AdminSettings, fleet_routes};
use crate::cli::ControllerArgs;
use crate::console::{self, Refusals};
use crate::failure::Failure;
use crate::limits_file::{self, Content, Loaded, News};
use crate::shutdown::{self, LINGER};
use crate::status;
use crate::tree::{self, Change, FleetSeat, Handle, HoldBack};

/// What a controller is started with.
pub(super) struct Settings {
    pub(super) id: Option<String>,
    pub(super) hold: Duration,
    /// Least time between two reports of one node.
    pub(super) spacing: Duration,
    /// When limits are held back until they are confirmed.
    pub(super) hold_back: HoldBack,
    pub(super) listen: SocketAddr,
    pub(super) admin: AdminSettings,
    pub(super) security: Security,
}

/// A controller that runs.
pub(super) struct Controller {
    pub(super) handle: Handle<FleetSeat>,
    pub(super) tree: SocketAddr,
    pub(super) admin: SocketAddr,
    ports: Ports,
    refusals: Arc<Refusals>,
}

/// `headworks controller`.
pub(crate) async fn run(args: ControllerArgs) -> Result<(), Failure> {
    let content = limits_file::read(&args.limits)?;
    let limits = Arc::new(content.parse()?);
    let common = args.common;
    let security = Security::of(&common.tls, Tier::Controller)?;
    security.check_tree("controller --listen", args.listen)?;
    let admin = args.access.at(args.admin)?;
    security.check_admin("controller --admin", admin.address(), admin.has_token())?;
    if common.ends_here("controller") {
        return Ok(());
    }
    let stop = shutdown::on_signal()?;
    let settings = Settings {
        id: common.id,
        hold: common.hold,
        spacing: args.report_spacing,
        hold_back: args.hold_back,
        listen: args.listen,
        admin,
        security,
    };
    let controller = Controller::start(settings, limits).await?;
    controller.follow(args.limits, content);
    stop.cancelled().await;
    shutdown::within(common.grace, controller.drain(LINGER)).await;
    Ok(())
}

impl Controller {
    pub(super) async fn start(settings: Settings, limits: Arc<LimitSet>) -> Result<Self, Failure> {
        let tree_listener = bind_tree("controller --listen", settings.listen).await?;
        let admin = AdminPort::bind(["controller --admin", "controller --metrics"], settings.admin).await?;
        let (tree, address) = (tree_listener.local_addr()?, admin.address()?);
        let identity = identity::of(settings.id, "controller", "", "");
        let clock = Clock::new();
        let fleet = Fleet::new(&identity, limits, settings.hold, clock.now()).with_spacing(settings.spacing);
        let handle = tree::start("fleet", FleetSeat::new(fleet, settings.hold_back), clock)?;
        let ports = Ports::new("controller", settings.security);
        let refusals = Arc::<Refusals>::default();
        let (asked, counted, witness) = (handle.clone(), refusals.clone(), ports.witness());
        let answers = Admin::new(ports.readiness(), move || {
            let (asked, errors, witness) = (asked.clone(), counted.count(), witness.clone());
            async move {
                let status = witness.complete(asked.ask(status::of_fleet).await?);
                Some(status::NodeStatus { limits_load_errors: errors, ..status })
            }
        });
        ports.tree(tree_listener, handle.clone())?;
        let (page, pulse) = console::start(handle.clone(), refusals.clone(), ports.closing());
        ports.spawn(pulse);
        admin.serve(&ports, answers.with(fleet_routes(&handle).merge(page)))?;
        ports.follow_credentials();
        ports.set_ready(true);
        Ok(Self { handle, tree, admin: address, ports, refusals })
    }

    /// Follows the limits file: what is good comes into force, unless it is held back; what is bad changes nothing but a
    /// counter.
    pub(super) fn follow(&self, path: PathBuf, content: Content) {
        let (handle, refusals) = (self.handle.clone(), self.refusals.clone());
        self.ports.spawn(limits_file::watch(
            path,
            content,
            self.ports.closing(),
            async move |news| match news {
                News::Changed(Loaded { limits, confirmed }) => {
                    refusals.settle();
                    handle.own(Change::Limits { limits, confirmed }).await;
                }
                News::Back => refusals.settle(),
                News::Refused(error) => refusals.refuse(&error),
            },
        ));
    }

    /// Not ready for `linger`, then closed.
    pub(super) async fn drain(self, linger: Duration) {
        self.ports.set_ready(false);
        sleep(linger).await;
        self.handle.leave().await;
        self.ports.close().await;
    }
}
