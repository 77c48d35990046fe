//! A fleet of separate processes on loopback: a controller, an aggregator in each zone, agents below it.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::configuration::Configuration;
use super::folder::Folder;
use super::node::Node;
use crate::failure::Failure;
use crate::load::Target;
use crate::status::{self, NodeStatus};

/// The zones, which agents take in turn.
const ZONES: [&str; 2] = ["a", "b"];
/// Any free port of this machine.
const FREE: &str = "127.0.0.1:0";
/// How long a fleet may take to stand, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// A running fleet; all of it is killed when dropped, and then its folder removed.
pub(super) struct Fleet {
    nodes: Vec<Node>,
    controller: String,
    agents: Vec<Agent>,
    folder: Folder,
}

struct Agent {
    admin: String,
    socket: PathBuf,
}

impl Fleet {
    /// Starts this many agents and what they need, held to `limit` a second, with their files in `folder`; and waits
    /// until it stands: the controller hears every agent, and every agent has a fresh plan.
    pub(super) async fn start(
        configuration: &Configuration,
        limit: u32,
        agents: u32,
        folder: Folder,
    ) -> Result<Self, Failure> {
        let limits = folder.path().join("limits.yaml");
        std::fs::write(&limits, configuration.limits(limit))?;
        let (limits, spacing) = (limits.display().to_string(), configuration.report_spacing);
        let args = ["controller", "--limits", &limits, "--report-spacing", spacing];
        let mut controller = Node::start("controller", &[&args[..], &parent_ports()].concat())?;
        let tree = format!("http://{}", controller.address_of("tree").await?);
        let admin = controller.address_of("admin").await?;
        let mut fleet = Self { nodes: vec![controller], controller: admin, agents: Vec::new(), folder };
        let aggregators = fleet.start_aggregators(&tree).await?;
        fleet.start_agents(&aggregators, agents).await?;
        let stands = timeout(PATIENCE, fleet.stands()).await;
        stands.map_err(|_| Failure::Failed(format!("the fleet does not stand after {PATIENCE:?}")))??;
        Ok(fleet)
    }

    /// The address that agents of each zone attach to.
    async fn start_aggregators(&mut self, controller: &str) -> Result<Vec<String>, Failure> {
        let mut trees = Vec::with_capacity(ZONES.len());
        for zone in ZONES {
            let args = ["aggregator", "--zone", zone, "--controllers", controller];
            let mut node =
                Node::start(&format!("aggregator-{zone}"), &[&args[..], &parent_ports()].concat())?;
            trees.push(format!("http://{}", node.address_of("tree").await?));
            self.nodes.push(node);
        }
        Ok(trees)
    }

    /// All at once, since they do not need one another.
    async fn start_agents(&mut self, aggregators: &[String], agents: u32) -> Result<(), Failure> {
        let first = self.nodes.len();
        for (number, (zone, aggregator)) in (0..agents).zip(ZONES.iter().zip(aggregators).cycle()) {
            let name = format!("agent-{zone}{}", number as usize / ZONES.len() + 1);
            let socket = self.folder.path().join(format!("{name}.sock"));
            let place = socket.display().to_string();
            let parent = ["agent", "--zone", zone, "--aggregators", aggregator];
            let ports = ["--http-unix", &place, "--http", FREE, "--admin", FREE];
            self.nodes.push(Node::start(&name, &[&parent[..], &ports].concat())?);
            self.agents.push(Agent { admin: String::new(), socket });
        }
        for (node, agent) in self.nodes[first..].iter_mut().zip(&mut self.agents) {
            agent.admin = node.address_of("admin").await?;
        }
        Ok(())
    }

    async fn stands(&mut self) -> Result<(), Failure> {
        loop {
            self.lives()?;
            if self.hears_all().await && self.has_fresh_plans().await {
                return Ok(());
            }
            sleep(LOOK).await;
        }
    }

    /// An error if one of its nodes has ended.
    pub(super) fn lives(&mut self) -> Result<(), Failure> {
        self.nodes.iter_mut().try_for_each(Node::lives)
    }

    async fn hears_all(&self) -> bool {
        let Some(status) = ask(&self.controller).await else { return false };
        let heard: u32 = status.children.iter().map(|child| child.agents).sum();
        usize::try_from(heard).is_ok_and(|heard| heard == self.agents.len())
    }

    async fn has_fresh_plans(&self) -> bool {
        for agent in &self.agents {
            let is_held = |status: NodeStatus| status.state == "fresh" && !status.limits.is_empty();
            if !ask(&agent.admin).await.is_some_and(is_held) {
                return false;
            }
        }
        true
    }

    /// Where its agents answer.
    pub(super) fn targets(&self) -> Vec<Target> {
        self.agents.iter().map(|agent| Target::unix(agent.socket.clone())).collect()
    }
}

fn parent_ports() -> [&'static str; 4] {
    ["--listen", FREE, "--admin", FREE]
}

/// What a node sees; nothing while it does not answer.
async fn ask(admin: &str) -> Option<NodeStatus> {
    status::ask(&format!("http://{admin}")).await.ok().map(|(status, _)| status)
}
