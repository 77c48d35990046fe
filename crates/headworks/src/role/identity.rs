//! Who a node is when nobody says.

use headworks_core::agent::Identity;

/// The identity of a new life of a node.
pub(super) fn of(id: Option<String>, role: &str, zone: &str, region: &str) -> Identity {
    Identity {
        node: id.unwrap_or_else(|| default_id(role)),
        incarnation: headworks_agent::draw_incarnation(),
        zone: zone.to_owned(),
        region: region.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Role, host and process: unique in a fleet of hosts with names of their own.
pub(super) fn default_id(role: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "localhost" } else { host.trim() };
    format!("{role}-{host}-{}", std::process::id())
}
