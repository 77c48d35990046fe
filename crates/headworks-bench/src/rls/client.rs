//! One client on one connection, which spends as little as it can: messages are written beforehand, and of answers only the end is
//! waited for.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request, Version};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};

/// A method, and a message for each key, as they travel.
pub(super) struct Question {
    path: &'static str,
    messages: Rc<Vec<Bytes>>,
}

impl Question {
    pub(super) fn new(path: &'static str, messages: impl Iterator<Item = Vec<u8>>) -> Self {
        Self { path, messages: Rc::new(messages.map(|message| framed(&message)).collect()) }
    }
}

/// As gRPC puts messages: not compressed, then the length.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], message].concat().into()
}

/// A field of a message: text or a message.
pub(super) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    assert!(length < 0x80, "longer lengths take two bytes");
    [&[number << 3 | 2, length], bytes].concat()
}

/// A field of a message: a whole number below 2²¹.
pub(super) fn number(number: u8, value: u32) -> Vec<u8> {
    let [low, middle, high] = [value, value >> 7, value >> 14].map(|part| (part & 0x7f).to_le_bytes()[0]);
    vec![number << 3, low | 0x80, middle | 0x80, high]
}

/// A connection.
pub(super) struct Client {
    requests: SendRequest<Bytes>,
    address: String,
    /// Drives the connection while something is asked.
    local: LocalSet,
}

impl Client {
    pub(super) async fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (requests, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
        let local = LocalSet::new();
        local.spawn_local(async move {
            if let Err(error) = connection.await {
                eprintln!("the connection ended: {error}");
            }
        });
        Ok(Self { requests, address: address.to_owned(), local })
    }

    /// Asks with so many requests in flight until the time is over; how many were answered.
    pub(super) async fn ask_for(
        &mut self,
        time: Duration,
        question: &Question,
        in_flight: usize,
    ) -> io::Result<u64> {
        let end = Instant::now() + time;
        let asked = async {
            let mut lanes = Vec::new();
            for lane in 0..in_flight {
                let (requests, address) = (self.requests.clone(), self.address.clone());
                let (messages, path) = (question.messages.clone(), question.path);
                lanes.push(spawn_local(async move {
                    let mut answered = 0;
                    for message in messages.iter().cycle().skip(lane * 61 % messages.len()) {
                        if Instant::now() >= end {
                            break;
                        }
                        ask(&requests, &address, path, message.clone()).await?;
                        answered += 1;
                    }
                    Ok::<u64, h2::Error>(answered)
                }));
            }
            let mut answered = 0;
            for lane in lanes {
                answered += lane.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
            }
            Ok(answered)
        };
        self.local.run_until(asked).await
    }
}

async fn ask(
    requests: &SendRequest<Bytes>,
    address: &str,
    path: &'static str,
    message: Bytes,
) -> Result<(), h2::Error> {
    let request = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request of constants");
    let mut requests = requests.clone().ready().await?;
    let (response, mut stream) = requests.send_request(request, false)?;
    stream.send_data(message, true)?;
    let mut body = response.await?.into_body();
    while let Some(data) = body.data().await {
        body.flow_control().release_capacity(data?.len())?;
    }
    let trailers = body.trailers().await?;
    let status = trailers.as_ref().and_then(|trailers| trailers.get("grpc-status"));
    assert!(status.is_some_and(|status| status == "0"), "a request was not answered: {trailers:?}");
    Ok(())
}
