//! One message in and one message out, as gRPC puts them on HTTP/2 (its protocol over HTTP/2, "Requests" and "Responses").
//!
//! For the rate limit service alone, which proxies ask for each of their requests: the streams that all methods of tonic are made
//! of cost as much as the rest of an answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as HttpBody, Frame, Incoming};
use prost::Message;
use tonic::Status;
use tonic::body::Body;

use super::MAX_MESSAGE_BYTES;

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// The message of a request.
pub(super) async fn read<M: Message + Default>(request: Request<Incoming>) -> Result<M, Status> {
    let body = Limited::new(request.into_body(), PREFIX + MAX_MESSAGE_BYTES).collect().await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let text =
                format!("the message is longer than {MAX_MESSAGE_BYTES} bytes: send less in one request");
            return Status::out_of_range(text);
        }
        Status::cancelled(format!("the message did not come in whole: {error}"))
    })?;
    parse(body.to_bytes())
}

fn parse<M: Message + Default>(mut bytes: Bytes) -> Result<M, Status> {
    if bytes.len() < PREFIX {
        return Err(Status::invalid_argument("the request has no message: send one"));
    }
    let (compressed, length) = (bytes.get_u8(), bytes.get_u32());
    if compressed != 0 {
        return Err(Status::unimplemented("compressed messages are not read here: send them as they are"));
    }
    if usize::try_from(length).ok() != Some(bytes.len()) {
        return Err(Status::invalid_argument("the message is not as long as it says"));
    }
    M::decode(bytes).map_err(|error| Status::invalid_argument(format!("no message of this service: {error}")))
}

/// An answer with this message.
pub(super) fn answer(message: &impl Message) -> Response<Body> {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // Fails for want of room alone, and the room is made.
    let _ = message.encode(&mut bytes);
    let mut answer = Response::new(Body::new(Whole::Message(bytes.freeze())));
    answer.headers_mut().insert(CONTENT_TYPE, GRPC);
    answer
}

/// What of an answer is still to be sent.
enum Whole {
    Message(Bytes),
    Status,
    Nothing,
}

impl HttpBody for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(match std::mem::replace(&mut *self, Self::Nothing) {
            Self::Message(bytes) => {
                *self = Self::Status;
                Some(Ok(Frame::data(bytes)))
            }
            Self::Status => Some(Ok(Frame::trailers(HeaderMap::from_iter([(STATUS, OK)])))),
            Self::Nothing => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn code(bytes: &'static [u8]) -> Result<u64, Code> {
        parse::<u64>(Bytes::from_static(bytes)).map_err(|status| status.code())
    }

    #[test]
    fn a_message_has_its_length_before_it_and_is_not_compressed() {
        assert_eq!(code(&[0, 0, 0, 0, 2, 8, 7]), Ok(7));
        assert_eq!(code(&[0, 0, 0, 0, 0]), Ok(0));
        assert_eq!(code(&[1, 0, 0, 0, 2, 8, 7]), Err(Code::Unimplemented));
        for wrong in
            [&[][..], &[0, 0, 0], &[0, 0, 0, 0, 3, 8, 7], &[0, 0, 0, 0, 1, 8, 7], &[0, 0, 0, 0, 1, 8]]
        {
            assert_eq!(code(wrong), Err(Code::InvalidArgument), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_is_a_message_and_then_a_status() {
        let answer = answer(&7_u64);
        assert_eq!(answer.headers()[CONTENT_TYPE], GRPC);
        let whole = answer.into_body().collect().await.unwrap();
        assert_eq!(whole.trailers().unwrap()[STATUS], OK);
        assert_eq!(parse::<u64>(whole.to_bytes()).unwrap(), 7);
    }
}
