//! The switch of the fleet.

use headworks_core::switch::Switch;

use crate::wire;

/// Absent when it was never thrown: to nodes of an earlier release nothing is different until then.
pub(crate) fn encode(switch: Switch) -> Option<wire::Switch> {
    let Switch { version, shadow_all } = switch;
    (switch != Switch::default()).then_some(wire::Switch { version, shadow_all })
}

/// Every version with either state is one.
pub(crate) fn decode(switch: Option<wire::Switch>) -> Switch {
    switch.map(|wire::Switch { version, shadow_all }| Switch { version, shadow_all }).unwrap_or_default()
}
