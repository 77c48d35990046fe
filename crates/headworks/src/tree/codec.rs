//! Messages of children as they come, plans as they were encoded.

use headworks_proto::{EncodedPlan, wire};
use prost::Message as _;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Bytes that a stream keeps for reading, and for writing. There are as many as children, and most messages are small; for larger
/// ones they grow, for a moment.
const BUFFER: usize = 1024;
/// Bytes that are written together at most.
const TOGETHER: usize = 32 * 1024;

/// How a parent speaks on its streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeCodec;

impl Codec for TreeCodec {
    type Encode = EncodedPlan;
    type Decode = wire::ChildMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for TreeCodec {
    type Item = EncodedPlan;
    type Error = Status;

    fn encode(&mut self, plan: EncodedPlan, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(plan.len());
        plan.write_to(buffer);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, TOGETHER)
    }
}

impl Decoder for TreeCodec {
    type Item = wire::ChildMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<wire::ChildMessage>, Status> {
        let message = wire::ChildMessage::decode(buffer);
        message.map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, TOGETHER)
    }
}
