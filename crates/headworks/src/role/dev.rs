//! `headworks dev`: a whole fleet in one process, over real streams on loopback, with demo traffic.

mod board;
mod traffic;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headworks_agent::HOLD;
use headworks_agent::uplink::Stay;
use headworks_core::limits::LimitSet;
use headworks_core::link::SPACING;

use super::agent::{self, AgentNode};
use super::aggregator::{self, Aggregator};
use super::controller::{self, Controller};
use super::security::Security;
use crate::admin::AdminSettings;
use crate::cli::DevArgs;
use crate::failure::Failure;
use crate::front::ProxyArgs;
use crate::limits_file::{self, Content};
use crate::shutdown;
use crate::tree::HoldBack;

/// The zones, and the agents in each.
const ZONES: [(&str, usize); 2] = [("a", 2), ("b", 2)];
/// Most time that a shutdown may take: nobody waits long for a demo to end.
const GRACE: Duration = Duration::from_millis(1500);
/// The limits when the user gives none.
const EXAMPLE: &str = include_str!("dev/example.yaml");

/// `headworks dev`.
pub(crate) async fn run(args: DevArgs) -> Result<(), Failure> {
    let (limits, followed) = load(args.limits)?;
    let admin = args.access.at(args.admin)?;
    let stop = shutdown::on_signal()?;
    let fleet = Fleet::start(args.http, admin, limits.clone()).await?;
    if let Some((path, content)) = followed {
        fleet.controller.follow(path, content);
    }
    let limiters = fleet.agents.iter().map(|agent| agent.limiter.clone()).collect::<Vec<_>>();
    println!("{}", board::welcome(fleet.agents[0].http, fleet.controller.admin));
    let traffic = tokio::spawn(traffic::run(limiters.clone(), limits, stop.clone()));
    board::show(&limiters, stop).await;
    let _ = traffic.await;
    shutdown::within(GRACE, fleet.drain()).await;
    Ok(())
}

type Followed = Option<(PathBuf, Content)>;

fn load(path: Option<PathBuf>) -> Result<(Arc<LimitSet>, Followed), Failure> {
    let Some(path) = path else {
        let example = headworks_core::limits::parse(EXAMPLE);
        let limits = example.map_err(|faults| Failure::Failed(format!("built-in example: {faults}")))?;
        return Ok((Arc::new(limits), None));
    };
    let content = limits_file::read(&path)?;
    Ok((Arc::new(content.parse()?), Some((path, content))))
}

struct Fleet {
    controller: Controller,
    aggregators: Vec<Aggregator>,
    agents: Vec<AgentNode>,
}

impl Fleet {
    async fn start(http: SocketAddr, admin: AdminSettings, limits: Arc<LimitSet>) -> Result<Self, Failure> {
        let settings = controller::Settings {
            id: Some("controller".to_owned()),
            hold: HOLD,
            spacing: SPACING,
            hold_back: HoldBack::default(),
            security: Security::default(),
            listen: free_port(),
            admin,
        };
        let controller = Controller::start(settings, limits).await?;
        let mut fleet = Self { controller, aggregators: Vec::new(), agents: Vec::new() };
        for (zone, agents) in ZONES {
            fleet.start_zone(zone, agents, http).await?;
        }
        Ok(fleet)
    }

    /// Only the very first agent takes the address that users are told; the others take what is free.
    async fn start_zone(&mut self, zone: &str, agents: usize, http: SocketAddr) -> Result<(), Failure> {
        let aggregator = Aggregator::start(aggregator::Settings {
            id: Some(format!("aggregator-{zone}")),
            zone: zone.to_owned(),
            region: String::new(),
            hold: HOLD,
            listen: free_port(),
            rlqs: None,
            admin: AdminSettings::read_only(free_port()),
            security: Security::default(),
            controllers: vec![format!("http://{}", self.controller.tree)],
            stay: Stay::default(),
        })
        .await?;
        for number in 1..=agents {
            let settings = agent::Settings {
                id: Some(format!("agent-{zone}{number}")),
                zone: zone.to_owned(),
                region: String::new(),
                hold: HOLD,
                aggregators: vec![format!("http://{}", aggregator.tree)],
                stay: Stay::default(),
                state_dir: None,
                own_limits: None,
                store: None,
                traces: None,
                http: if self.agents.is_empty() { http } else { free_port() },
                http_unix: None,
                proxy: ProxyArgs::default(),
                admin: AdminSettings::read_only(free_port()),
                security: Security::default(),
            };
            self.agents.push(AgentNode::start(settings).await?);
        }
        self.aggregators.push(aggregator);
        Ok(())
    }

    /// From the leaves to the root, so that every last report is heard.
    async fn drain(self) {
        for agent in self.agents {
            agent.drain(Duration::ZERO).await;
        }
        for aggregator in self.aggregators {
            aggregator.drain(Duration::ZERO).await;
        }
        self.controller.drain(Duration::ZERO).await;
    }
}

fn free_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}
