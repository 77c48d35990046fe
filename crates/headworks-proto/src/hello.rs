//! Hellos.

use headworks_core::limits::Digest;
use headworks_core::message::{Hello, Incarnation, Tier};

use crate::{WireError, switch, wire};

/// Longest text of a hello, in bytes.
const MAX_TEXT: usize = 128;

pub(crate) fn encode(hello: &Hello) -> wire::Hello {
    wire::Hello {
        node: hello.node.clone(),
        incarnation: hello.incarnation.0,
        tier: tier(hello.tier).into(),
        zone: hello.zone.clone(),
        region: hello.region.clone(),
        version: hello.version.clone(),
        previous_parent: hello.previous_parent.clone().unwrap_or_default(),
        previous_incarnation: hello.previous_incarnation.map_or(0, |incarnation| incarnation.0),
        limits_digest: hello.limits.map(|digest| digest.0.to_vec()).unwrap_or_default(),
        switch: switch::encode(hello.switch),
    }
}

fn tier(tier: Tier) -> wire::Tier {
    match tier {
        Tier::Agent => wire::Tier::Agent,
        Tier::Aggregator => wire::Tier::Aggregator,
        Tier::Controller => wire::Tier::Controller,
    }
}

pub(crate) fn decode(hello: wire::Hello) -> Result<Hello, WireError> {
    let tier = match hello.tier() {
        wire::Tier::Agent => Tier::Agent,
        wire::Tier::Aggregator => Tier::Aggregator,
        wire::Tier::Controller => Tier::Controller,
        wire::Tier::Unspecified => return Err(WireError::Missing("hello.tier")),
    };
    if hello.node.is_empty() {
        return Err(WireError::Missing("hello.node"));
    }
    if hello.incarnation == 0 {
        return Err(WireError::Missing("hello.incarnation"));
    }
    Ok(Hello {
        node: bounded("hello.node", hello.node)?,
        incarnation: Incarnation(hello.incarnation),
        tier,
        zone: bounded("hello.zone", hello.zone)?,
        region: bounded("hello.region", hello.region)?,
        version: bounded("hello.version", hello.version)?,
        previous_incarnation: Some(Incarnation(hello.previous_incarnation)).filter(|life| life.0 != 0),
        previous_parent: Some(bounded("hello.previous_parent", hello.previous_parent)?)
            .filter(|parent| !parent.is_empty()),
        limits: digest("hello.limits_digest", &hello.limits_digest)?,
        switch: switch::decode(hello.switch),
    })
}

fn bounded(field: &'static str, text: String) -> Result<String, WireError> {
    if text.len() > MAX_TEXT {
        return Err(WireError::TooLong { field, length: text.len(), max: MAX_TEXT });
    }
    // Names go into logs, tables and metrics of every node above.
    if text.chars().any(char::is_control) {
        return Err(WireError::ControlCharacter(field));
    }
    Ok(text)
}

/// A digest; none where the field is empty.
pub(crate) fn digest(field: &'static str, bytes: &[u8]) -> Result<Option<Digest>, WireError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    bytes.try_into().map(|bytes| Some(Digest(bytes))).map_err(|_| WireError::WrongLength(field))
}
