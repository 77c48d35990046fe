//! Who a node is when nobody says.

use headworks_agent::settings::default_id;
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
