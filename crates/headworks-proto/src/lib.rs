//! The Headworks protocol: generated code, and conversions between wire and core.
//!
//! To the wire is infallible. From the wire is checked: a message that is unusable as a whole is an error; an entry that
//! makes no sense is left out by itself and counted, so that one bad bucket never costs the others.

mod bucket;
mod child;
mod encoded;
mod error;
mod hello;
mod kept;
mod limits;
mod plan;
mod report;
mod switch;

/// Code generated from `proto/headworks/v1`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, rust_2018_idioms)]
pub mod wire {
    tonic::include_proto!("headworks.v1");
}

pub use child::{FromChild, decode_child, goodbye_message, hello_message, report_message};
pub use encoded::{EncodedPlan, PlanEncoder};
pub use error::WireError;
pub use kept::{decode_kept, kept_message};
pub use plan::{decode_plan, plan_message};

/// The protocol's descriptors, as an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/headworks.v1.descriptor"));

/// Largest report that a parent reads, in bytes: 100 000 buckets that it has numbered, or some 40 000 new ones.
pub const MAX_REPORT_BYTES: usize = 4 * 1024 * 1024;
/// Most buckets read from one report; those past it are refused and counted, named ones first. Without this bound a report
/// of numbers alone, one byte each, would grow to a hundred times its size in memory.
pub const MAX_BUCKETS_PER_REPORT: usize = 100_000;
/// Largest plan that a child reads, in bytes: 100 000 limits on attaching.
pub const MAX_PLAN_BYTES: usize = 16 * 1024 * 1024;
/// Most of it that limits may take: the rest is for the names and headrooms of a plan's buckets. A parent refuses larger
/// sets when it loads them; a child could only break off, again and again.
pub const MAX_LIMITS_BYTES: usize = 12 * 1024 * 1024;

/// What a set of limits takes in a plan, in bytes.
pub fn limits_bytes(limits: &headworks_core::limits::LimitSet) -> usize {
    prost::Message::encoded_len(&limits::encode(limits))
}
