//! Requests of the rate limit service as they come. Their texts are read as bytes: some are headers of clients, which need not be
//! UTF-8, and a message that cannot be read is an error, with which Envoy lets the client's request pass.

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;

use crate::front::stand_in;

/// `RateLimitRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Request {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) domain: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(super) descriptors: Vec<Descriptor>,
    #[prost(uint32, tag = "3")]
    pub(super) hits_addend: u32,
}

impl Request {
    /// Puts what stands for them in the place of values that are none to count by.
    pub(super) fn replace_unsound(&mut self) {
        let entries = self.descriptors.iter_mut().flat_map(|descriptor| &mut descriptor.entries);
        for entry in entries.filter(|entry| stand_in::sound(&entry.value).is_none()) {
            entry.value = stand_in::of(&entry.value).into();
        }
    }
}

/// `RateLimitDescriptor`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<Entry>,
    #[prost(message, optional, tag = "2")]
    pub(super) limit: Option<RateLimitOverride>,
    /// A `UInt64Value`: it may be 0, and may be absent.
    #[prost(message, optional, tag = "3")]
    pub(super) hits_addend: Option<u64>,
    #[prost(bool, tag = "4")]
    pub(super) is_negative_hits: bool,
}

/// An entry of a descriptor.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Entry {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
}
