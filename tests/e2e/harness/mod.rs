//! What the tests are told in: a fleet of real processes, load on it, and what it says about itself.

mod browser;
mod certs;
mod figures;
mod fleet;
mod http;
mod limits;
mod link;
mod load;
mod log;
mod metrics;
mod node;
mod process;
mod redis;
mod status;
mod tally;
mod terminal;
mod tls;
mod traffic;
mod wait;

pub(crate) use browser::{Browser, Look};
pub(crate) use certs::{Authority, Issued, Pki, Secret};
pub(crate) use figures::{Figure, fraction};
pub(crate) use fleet::{Fleet, FleetPlan};
pub(crate) use http::{Answer, get, get_unix, send};
pub(crate) use limits::LimitsFile;
pub(crate) use link::{Flow, Link};
pub(crate) use load::{Load, Loads};
pub(crate) use node::Node;
pub(crate) use process::{Ended, Process};
pub(crate) use redis::{Redis, free_port};
pub(crate) use tally::Tally;
pub(crate) use terminal::Terminal;
pub(crate) use tls::{connect, greet, shown_serial};
pub(crate) use traffic::Traffic;
pub(crate) use wait::{eventually, sleep_until};
