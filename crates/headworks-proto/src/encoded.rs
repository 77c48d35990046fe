//! Plans as bytes, for a parent that tells the same headrooms to many children.
//!
//! A message may have its fields in any order: what differs from child to child comes first, and then the headrooms, which
//! are encoded once for all that hear the same.

use std::sync::Arc;

use headworks_core::message::{Plan, PlanEntry};
use prost::Message as _;
use prost::bytes::{BufMut, Bytes};
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::{plan, wire};

/// Most lists of headrooms that are kept beside each other: children that differ in what they heard last.
const KEPT: usize = 8;
/// `plan` in `ParentMessage`.
const PLAN: u32 = 1;

/// The bytes of a parent's message.
#[derive(Clone, Debug)]
pub struct EncodedPlan {
    head: Vec<u8>,
    headrooms: Bytes,
}

impl EncodedPlan {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.head.len() + self.headrooms.len()
    }

    /// Whether there are none, which never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes them.
    pub fn write_to(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(&self.head);
        buffer.put_slice(&self.headrooms);
    }
}

/// Encodes plans, and each list of headrooms once.
#[derive(Debug, Default)]
pub struct PlanEncoder {
    kept: Vec<Kept>,
    oldest: usize,
}

#[derive(Debug)]
struct Kept {
    shared: Arc<[PlanEntry]>,
    private: Arc<[PlanEntry]>,
    bytes: Bytes,
}

impl PlanEncoder {
    /// The message of a plan: the same for its reader as [`crate::plan_message`].
    pub fn encode(&mut self, plan: &Plan) -> EncodedPlan {
        let headrooms = self.headrooms(&plan.shared, &plan.private);
        let own = plan::encode_head(plan);
        let own_length = own.encoded_len();
        let mut head = Vec::with_capacity(own_length + 12);
        encode_key(PLAN, WireType::LengthDelimited, &mut head);
        encode_varint((own_length + headrooms.len()) as u64, &mut head);
        own.encode_raw(&mut head);
        EncodedPlan { head, headrooms }
    }

    fn headrooms(&mut self, shared: &Arc<[PlanEntry]>, private: &Arc<[PlanEntry]>) -> Bytes {
        if shared.is_empty() && private.is_empty() {
            return Bytes::new();
        }
        let same = |kept: &&Kept| Arc::ptr_eq(&kept.shared, shared) && Arc::ptr_eq(&kept.private, private);
        if let Some(kept) = self.kept.iter().find(same) {
            return kept.bytes.clone();
        }
        let sections = wire::Plan {
            shared: plan::section(shared),
            private: plan::section(private),
            ..wire::Plan::default()
        };
        let bytes = Bytes::from(sections.encode_to_vec());
        self.keep(Kept { shared: shared.clone(), private: private.clone(), bytes: bytes.clone() });
        bytes
    }

    /// In the place of the oldest. What is kept holds its lists, so that no other can have their address.
    fn keep(&mut self, kept: Kept) {
        if self.kept.len() < KEPT {
            self.kept.push(kept);
        } else {
            self.kept[self.oldest] = kept;
            self.oldest = (self.oldest + 1) % KEPT;
        }
    }
}
