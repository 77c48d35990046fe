//! The parents of a fleet, as separate processes on loopback: a controller, and an aggregator in each zone.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::folder::Folder;
use super::node::Node;
use crate::failure::Failure;
use crate::status::{self, NodeStatus};

/// Any free port of this machine.
pub(super) const FREE: &str = "127.0.0.1:0";
/// How long a fleet may take to stand, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// Running parents; all of them are killed when dropped, and then their folder removed.
pub(super) struct Parents {
    pub(super) controller: Parent,
    pub(super) aggregators: Vec<Parent>,
    pub(super) folder: Folder,
}

/// One of them.
pub(super) struct Parent {
    pub(super) node: Node,
    /// Where its children attach.
    pub(super) url: String,
    admin: String,
}

impl Parents {
    /// Starts a controller with these limits and this `--report-spacing`, and an aggregator for each of the zones. What
    /// files they need are in `folder`.
    pub(super) async fn start(
        folder: Folder,
        limits: &str,
        spacing: &str,
        zones: &[&str],
    ) -> Result<Self, Failure> {
        Self::with_threads(folder, limits, spacing, zones, None).await
    }

    /// The same, with so many threads in each for what is asynchronous.
    pub(super) async fn with_threads(
        folder: Folder,
        limits: &str,
        spacing: &str,
        zones: &[&str],
        threads: Option<u32>,
    ) -> Result<Self, Failure> {
        let file = folder.path().join("limits.yaml");
        std::fs::write(&file, limits)?;
        let args = ["controller", "--limits", &file.display().to_string(), "--report-spacing", spacing];
        let controller = Parent::start("controller", &args, threads).await?;
        let mut parents = Self { controller, aggregators: Vec::with_capacity(zones.len()), folder };
        for zone in zones {
            let args = ["aggregator", "--zone", zone, "--controllers", &parents.controller.url];
            parents.aggregators.push(Parent::start(&format!("aggregator-{zone}"), &args, threads).await?);
        }
        Ok(parents)
    }

    /// The first aggregator, or else the controller.
    pub(super) fn of(&self, aggregator: bool) -> &Parent {
        self.aggregators.first().filter(|_| aggregator).unwrap_or(&self.controller)
    }

    /// An error if one of them has ended.
    pub(super) fn live(&mut self) -> Result<(), Failure> {
        self.controller.node.lives()?;
        self.aggregators.iter_mut().try_for_each(|aggregator| aggregator.node.lives())
    }
}

impl Parent {
    async fn start(name: &str, args: &[&str], threads: Option<u32>) -> Result<Self, Failure> {
        let common = ["--id", name, "--listen", FREE, "--admin", FREE];
        let mut node = Node::launch(name, &[args, &common].concat(), threads)?;
        let url = format!("http://{}", node.address_of("tree").await?);
        let admin = node.address_of("admin").await?;
        Ok(Self { node, url, admin })
    }

    /// What it sees.
    pub(super) async fn status(&self) -> Result<NodeStatus, Failure> {
        let status = ask(&self.admin).await;
        status.ok_or_else(|| Failure::Failed(format!("http://{} does not answer", self.admin)))
    }

    /// Whether it answers, has a fresh plan, and hears so many agents at or below its children.
    pub(super) async fn hears(&self, agents: usize) -> bool {
        let Some(status) = ask(&self.admin).await else { return false };
        let heard: u32 = status.children.iter().map(|child| child.agents).sum();
        status.state == "fresh" && usize::try_from(heard).is_ok_and(|heard| heard == agents)
    }
}

/// What a node sees; nothing while it does not answer.
pub(super) async fn ask(admin: &str) -> Option<NodeStatus> {
    status::ask(&format!("http://{admin}")).await.ok().map(|(status, _)| status)
}

/// Looks again and again whether a fleet stands, but not for ever.
pub(super) async fn until_it_stands(
    mut stands: impl AsyncFnMut() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let looks = async {
        while !stands().await? {
            sleep(LOOK).await;
        }
        Ok(())
    };
    let stood = timeout(PATIENCE, looks).await;
    stood.unwrap_or_else(|_| Err(Failure::Failed(format!("the fleet does not stand after {PATIENCE:?}"))))
}
