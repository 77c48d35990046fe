//! Plans.

use std::sync::Arc;
use std::time::Duration;

use headworks_core::limits::LimitSet;
use headworks_core::message::{BucketNumber, Incarnation, Plan, PlanEntry, View};
use headworks_core::units::Headroom;

use crate::report::{micros, narrow};
use crate::wire::parent_message::Message;
use crate::{WireError, bucket, hello, limits, switch, wire};

/// The message of a plan.
pub fn plan_message(plan: &Plan) -> wire::ParentMessage {
    wire::ParentMessage { message: Some(Message::Plan(encode(plan))) }
}

fn encode(plan: &Plan) -> wire::Plan {
    wire::Plan { shared: section(&plan.shared), private: section(&plan.private), ..encode_head(plan) }
}

/// All but its headrooms.
pub(crate) fn encode_head(plan: &Plan) -> wire::Plan {
    let named = |(number, key): &(BucketNumber, _)| wire::NumberedKey {
        number: number.0,
        key: Some(bucket::encode(key)),
    };
    wire::Plan {
        incarnation: plan.incarnation.0,
        sequence: plan.sequence,
        heard: plan.heard,
        age_micros: micros(plan.age),
        ttl_micros: micros(plan.ttl),
        interval_micros: micros(plan.interval),
        spacing_micros: micros(plan.spacing),
        view: Some(encode_view(plan.view)),
        limits_digest: plan.digest.0.to_vec(),
        generation: plan.generation,
        limits: plan.limits.as_deref().map(limits::encode),
        names: plan.names.iter().map(named).collect(),
        shared: None,
        private: None,
        switch: switch::encode(plan.switch),
        forgets: plan.forgets,
        untracked: plan.untracked.iter().map(bucket::encode).collect(),
    }
}

pub(crate) fn section(entries: &[PlanEntry]) -> Option<wire::Headrooms> {
    let budgets = entries.iter().any(|entry| entry.tokens.is_some());
    let tokens = entries.iter().map(|entry| entry.tokens.unwrap_or(f64::NAN));
    (!entries.is_empty()).then(|| wire::Headrooms {
        tokens: if budgets { tokens.collect() } else { Vec::new() },
        numbers: entries.iter().map(|entry| entry.bucket.0).collect(),
        headroom: entries.iter().map(|entry| narrow(entry.headroom.value())).collect(),
    })
}

/// What a parent's message says, and how many of its entries made no sense and are left out.
///
/// # Errors
/// If the message is no plan, lacks what it must have, or has columns of unequal length.
pub fn decode_plan(message: wire::ParentMessage) -> Result<(Plan, u32), WireError> {
    let Message::Plan(plan) = message.message.ok_or(WireError::NoMessage)?;
    if plan.incarnation == 0 {
        return Err(WireError::Missing("plan.incarnation"));
    }
    let mut refused = 0;
    let limits = plan.limits.map(|limits| limits::decode(limits, &mut refused));
    let plan = Plan {
        incarnation: Incarnation(plan.incarnation),
        sequence: plan.sequence,
        heard: plan.heard,
        age: Duration::from_micros(plan.age_micros),
        ttl: Duration::from_micros(plan.ttl_micros),
        interval: Duration::from_micros(plan.interval_micros),
        spacing: Duration::from_micros(plan.spacing_micros),
        view: decode_view(plan.view.unwrap_or_default()),
        digest: hello::digest("plan.limits_digest", &plan.limits_digest)?
            .ok_or(WireError::Missing("plan.limits_digest"))?,
        generation: plan.generation,
        limits: limits.map(|limits| Arc::new(LimitSet::new(limits))),
        names: names(plan.names, &mut refused),
        shared: entries("shared", plan.shared, &mut refused)?.into(),
        private: entries("private", plan.private, &mut refused)?.into(),
        switch: switch::decode(plan.switch),
        forgets: plan.forgets,
        untracked: untracked(plan.untracked, &mut refused),
    };
    Ok((plan, refused))
}

pub(crate) fn encode_view(view: View) -> wire::View {
    wire::View { aggregators: view.aggregators, agents: view.agents, demand: view.demand }
}

pub(crate) fn decode_view(view: wire::View) -> View {
    let demand = if view.demand.is_finite() { view.demand.max(0.0) } else { 0.0 };
    View { aggregators: view.aggregators, agents: view.agents, demand }
}

fn names(
    names: Vec<wire::NumberedKey>,
    refused: &mut u32,
) -> Vec<(BucketNumber, headworks_core::bucket::BucketKey)> {
    let mut decoded = Vec::with_capacity(names.len());
    for name in names {
        match name.key.and_then(bucket::decode) {
            Some(key) => decoded.push((BucketNumber(name.number), key)),
            None => *refused += 1,
        }
    }
    decoded
}

fn untracked(keys: Vec<wire::BucketKey>, refused: &mut u32) -> Vec<headworks_core::bucket::BucketKey> {
    let all = keys.len();
    let keys: Vec<_> = keys.into_iter().filter_map(bucket::decode).collect();
    *refused = refused.saturating_add(u32::try_from(all - keys.len()).unwrap_or(u32::MAX));
    keys
}

fn entries(
    column: &'static str,
    section: Option<wire::Headrooms>,
    refused: &mut u32,
) -> Result<Vec<PlanEntry>, WireError> {
    let section = section.unwrap_or_default();
    let expected = section.numbers.len();
    if section.headroom.len() != expected {
        return Err(WireError::UnequalColumns { column, length: section.headroom.len(), expected });
    }
    if !section.tokens.is_empty() && section.tokens.len() != expected {
        return Err(WireError::UnequalColumns { column, length: section.tokens.len(), expected });
    }
    let mut entries = Vec::with_capacity(expected);
    for (index, (number, headroom)) in section.numbers.into_iter().zip(section.headroom).enumerate() {
        let tokens = section.tokens.get(index).copied().filter(|tokens| !tokens.is_nan());
        let headroom = Headroom::new(f64::from(headroom)).filter(|_| tokens.is_none_or(f64::is_finite));
        match headroom {
            Some(headroom) => entries.push(PlanEntry { bucket: BucketNumber(number), headroom, tokens }),
            None => *refused += 1,
        }
    }
    Ok(entries)
}
