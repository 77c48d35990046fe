//! What a request of the rate limit service asks: its descriptors as attributes. Pure.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use headworks_core::attributes::Attributes;
use headworks_core::exact::Rule;
use headworks_core::limits::Algorithm;
use headworks_core::units::{Rate, Unit};
use smallvec::SmallVec;

use super::wire::{Descriptor, Request};
use crate::front::query::{MAX_ATTRIBUTES, MAX_COST, MAX_NAME_BYTES};
use crate::front::stand_in;

/// Most descriptors of one request: each is decided by itself, and a proxy sends a few.
pub(super) const MAX_DESCRIPTORS: usize = 64;

/// Most entries of a descriptor: with the domain they are attributes.
const MAX_ENTRIES: usize = MAX_ATTRIBUTES - 1;

/// The attribute that the domain becomes.
const DOMAIN: &str = "domain";

/// One descriptor.
#[derive(Debug)]
pub(super) struct Asked<'r> {
    /// The domain, and then the entries that have a value, in their order.
    pairs: SmallVec<[(&'r str, &'r str); 4]>,
    pub(super) hits: Hits,
    /// What holds in place of the limits in force.
    pub(super) instead: Option<Instead>,
}

impl Asked<'_> {
    pub(super) fn attributes(&self) -> Attributes<'_> {
        Attributes::new(&self.pairs)
    }
}

/// What a descriptor does to the limits that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hits {
    /// Takes so much; what each limit says of a request that does not say.
    Take(Option<u32>),
    /// Meets none.
    None,
    /// Takes nothing.
    Look,
    /// Gives back so much.
    GiveBack(Option<u32>),
    /// Is more than any limit passes: refused, and taken from none.
    Excess,
}

/// A limit that comes with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instead {
    pub(super) amount: u32,
    /// As it came.
    pub(super) unit: i32,
    pub(super) rule: Rule,
    pub(super) rate: Rate,
}

/// What is wrong with a request, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AskError {
    #[error("the domain is empty: set `domain` in the filter's configuration")]
    NoDomain,
    #[error("the request has no descriptors: configure rate limit actions for the route")]
    NoDescriptors,
    #[error("{0} descriptors: at most {MAX_DESCRIPTORS} are taken")]
    ManyDescriptors(usize),
    #[error("no descriptor has an entry: give the route an action that does not depend on the client")]
    NoEntries,
    #[error("descriptor {0} has more than {MAX_ENTRIES} entries: send those that limits match on")]
    ManyEntries(usize),
    #[error("descriptor {0} has an entry without a key: set its descriptor_key")]
    NoKey(usize),
    #[error(
        "descriptor {0} has the key {1:?} twice: give each action a descriptor_key of its own, other than \"domain\""
    )]
    Twice(usize, String),
    #[error("a key of descriptor {0}, or the domain, is longer than {MAX_NAME_BYTES} bytes: shorten it")]
    LongKey(usize),
    #[error("a key of descriptor {0}, or the domain, is not UTF-8: write it in UTF-8")]
    NotUtf8(usize),
    #[error("a key of descriptor {0}, or the domain, has control characters: leave them out")]
    Control(usize),
    #[error("a value of descriptor {0} cannot be counted by")]
    Value(usize),
    #[error("the limit of descriptor {0} has the unit {1}: use one from SECOND (1) to YEAR (6)")]
    BadUnit(usize, i32),
}

/// Reads a request.
pub(super) fn read(request: &Request) -> Result<SmallVec<[Asked<'_>; 1]>, AskError> {
    let domain = name(0, &request.domain)?;
    if domain.is_empty() {
        return Err(AskError::NoDomain);
    }
    match request.descriptors.len() {
        0 => return Err(AskError::NoDescriptors),
        many if many > MAX_DESCRIPTORS => return Err(AskError::ManyDescriptors(many)),
        _ => {}
    }
    // Where a header is absent by which an action goes, Envoy sends a descriptor without entries. That meets no limit, and an error would
    // let the client that left the header out pass all the others.
    if request.descriptors.iter().all(|descriptor| descriptor.entries.is_empty()) {
        return Err(AskError::NoEntries);
    }
    let asked = request.descriptors.iter().enumerate();
    asked.map(|(place, descriptor)| read_one(place, domain, request.hits_addend, descriptor)).collect()
}

fn read_one<'r>(
    place: usize,
    domain: &'r str,
    hits_of_request: u32,
    descriptor: &'r Descriptor,
) -> Result<Asked<'r>, AskError> {
    if descriptor.entries.len() > MAX_ENTRIES {
        return Err(AskError::ManyEntries(place));
    }
    let mut pairs: SmallVec<[(&str, &str); 4]> = SmallVec::new();
    pairs.push((DOMAIN, domain));
    let hits = if descriptor.entries.is_empty() { Hits::None } else { hits(hits_of_request, descriptor) };
    for entry in &descriptor.entries {
        let key = name(place, &entry.key)?;
        if key.is_empty() {
            return Err(AskError::NoKey(place));
        }
        if pairs.iter().any(|(other, _)| *other == key) {
            return Err(AskError::Twice(place, key.to_owned()));
        }
        // Whatever is none was replaced when the request came.
        let value = stand_in::sound(&entry.value).ok_or(AskError::Value(place))?;
        if !value.is_empty() {
            pairs.push((key, value));
        }
    }
    let instead = descriptor.limit.as_ref().map(|limit| Instead::of(place, limit)).transpose()?;
    Ok(Asked { pairs, hits, instead })
}

/// A domain or a key, which the proxy's configuration says.
fn name(place: usize, bytes: &[u8]) -> Result<&str, AskError> {
    if bytes.len() > MAX_NAME_BYTES {
        return Err(AskError::LongKey(place));
    }
    let name = str::from_utf8(bytes).map_err(|_| AskError::NotUtf8(place))?;
    if name.chars().any(char::is_control) {
        return Err(AskError::Control(place));
    }
    Ok(name)
}

/// Of the whole request, no hits are one, since such a number cannot be left out; of a descriptor, they are none.
fn hits(of_request: u32, descriptor: &Descriptor) -> Hits {
    let hits = descriptor.hits_addend.or((of_request > 0).then_some(of_request.into()));
    match hits.map(|hits| u32::try_from(hits).ok().filter(|hits| *hits <= MAX_COST)) {
        Some(None) => Hits::Excess,
        Some(Some(0)) => Hits::Look,
        hits if descriptor.is_negative_hits => Hits::GiveBack(hits.flatten()),
        hits => Hits::Take(hits.flatten()),
    }
}

impl Instead {
    fn of(place: usize, limit: &RateLimitOverride) -> Result<Self, AskError> {
        let (amount, unit) = (u64::from(limit.requests_per_unit), RateLimitUnit::try_from(limit.unit));
        let rate = |unit| Rate::Per { amount, unit };
        let rate = match unit {
            Ok(RateLimitUnit::Second) => rate(Unit::Second),
            Ok(RateLimitUnit::Minute) => rate(Unit::Minute),
            Ok(RateLimitUnit::Hour) => rate(Unit::Hour),
            Ok(RateLimitUnit::Day) => rate(Unit::Day),
            Ok(RateLimitUnit::Month) => rate(Unit::Month),
            Ok(RateLimitUnit::Year) => rate(Unit::Year),
            Ok(RateLimitUnit::Unknown) | Err(_) => return Err(AskError::BadUnit(place, limit.unit)),
        };
        let rule = Rule::new(Algorithm::TokenBucket, rate, Some(amount));
        Ok(Self { amount: limit.requests_per_unit, unit: limit.unit, rule, rate })
    }
}
