//! A fleet of separate processes: parents in two zones, agents below them.

use std::path::PathBuf;

use super::configuration::Configuration;
use super::folder::Folder;
use super::node::Node;
use super::parents::{FREE, Parents, ask, until_it_stands};
use crate::failure::Failure;
use crate::load::Target;
use crate::status::NodeStatus;

/// The zones, which agents take in turn.
const ZONES: [&str; 2] = ["a", "b"];

/// A running fleet; all of it is killed when dropped, and then its folder removed.
pub(super) struct Fleet {
    agents: Vec<Agent>,
    parents: Parents,
}

struct Agent {
    node: Node,
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
        let limits = configuration.limits(limit);
        let parents = Parents::start(folder, &limits, configuration.report_spacing, &ZONES).await?;
        let mut fleet = Self { agents: Vec::new(), parents };
        fleet.start_agents(agents).await?;
        until_it_stands(async || fleet.stands().await).await?;
        Ok(fleet)
    }

    /// All at once, since they do not need one another.
    async fn start_agents(&mut self, agents: u32) -> Result<(), Failure> {
        let zones = ZONES.iter().zip(&self.parents.aggregators).cycle();
        for (number, (zone, aggregator)) in (0..agents).zip(zones) {
            let name = format!("agent-{zone}{}", number as usize / ZONES.len() + 1);
            let socket = self.parents.folder.path().join(format!("{name}.sock"));
            let place = socket.display().to_string();
            let parent = ["agent", "--zone", zone, "--aggregators", &aggregator.url];
            let ports = ["--http-unix", &place, "--http", FREE, "--admin", FREE];
            let node = Node::start(&name, &[&parent[..], &ports].concat())?;
            self.agents.push(Agent { node, admin: String::new(), socket });
        }
        for agent in &mut self.agents {
            agent.admin = agent.node.address_of("admin").await?;
        }
        Ok(())
    }

    async fn stands(&mut self) -> Result<bool, Failure> {
        self.lives()?;
        Ok(self.parents.controller.hears(self.agents.len()).await && self.has_fresh_plans().await)
    }

    /// An error if one of its nodes has ended.
    pub(super) fn lives(&mut self) -> Result<(), Failure> {
        self.parents.live()?;
        self.agents.iter_mut().try_for_each(|agent| agent.node.lives())
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
