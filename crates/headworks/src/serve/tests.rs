use std::net::SocketAddr;
use std::time::Duration;

use axum::routing::{get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::*;

/// A running server.
struct Server {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

fn routes() -> Router {
    let slow = || async {
        sleep(Duration::from_millis(200)).await;
        "late"
    };
    let size = |body: Bytes| async move { body.len().to_string() };
    Router::new().route("/", get(|| async { "ok" })).route("/slow", get(slow)).route("/size", post(size))
}

fn quick() -> Bounds {
    Bounds {
        silence: Duration::from_millis(200),
        body: Duration::from_millis(200),
        unread: Duration::from_millis(200),
        ..Bounds::default()
    }
}

async fn serve(bounds: Bounds) -> Server {
    let Listener::Tcp(listener) = bind_tcp("--admin", "127.0.0.1:0".parse().unwrap()).await.unwrap() else {
        unreachable!("a TCP listener")
    };
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(run(Listener::Tcp(listener), routes(), bounds, shutdown.clone()));
    Server { address, shutdown, task }
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `request` on a connection of its own and reads until the server closes it.
    async fn exchange(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        // A server that refuses a request may close before it has read all of it.
        let _ = stream.write_all(request.as_bytes()).await;
        rest_of(&mut stream).await
    }
}

async fn rest_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await.expect("the server closes");
    String::from_utf8(bytes).unwrap()
}

async fn read_some(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 4096];
    let read = timeout(Duration::from_secs(5), stream.read(&mut bytes)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn closes_connections_that_send_nothing() {
    let server = serve(quick()).await;
    let start = Instant::now();
    assert_eq!(rest_of(&mut server.connect().await).await, "");
    assert!(start.elapsed() >= quick().silence);
}

#[tokio::test]
async fn closes_connections_that_fall_silent_after_an_answer() {
    let server = serve(quick()).await;
    let mut stream = server.connect().await;
    stream.write_all(ASK).await.unwrap();
    assert!(rest_of(&mut stream).await.ends_with("ok"));
}

#[tokio::test]
async fn closes_connections_that_trickle_a_head() {
    let server = serve(quick()).await;
    let mut stream = server.connect().await;
    let start = Instant::now();
    let mut trickle = ASK.iter();
    while stream.write_all(&[*trickle.next().expect("closed before the end")]).await.is_ok() {
        sleep(Duration::from_millis(50)).await;
        if start.elapsed() > Duration::from_secs(1) {
            break;
        }
        if matches!(stream.try_read(&mut [0; 64]), Ok(0)) {
            return;
        }
    }
    assert!(start.elapsed() < Duration::from_secs(1), "still open");
}

#[tokio::test]
async fn ends_bodies_that_trickle() {
    let server = serve(quick()).await;
    let answer = server.exchange("POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn refuses_bodies_over_the_bound_announced_or_not() {
    let server = serve(quick()).await;
    let announced = server.exchange("POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n").await;
    assert!(announced.starts_with("HTTP/1.1 413 "), "{announced}");
    let chunk = format!("11000\r\n{}\r\n0\r\n\r\n", "x".repeat(0x11000));
    let head = "POST /size HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let unannounced = server.exchange(&format!("{head}{chunk}")).await;
    assert!(unannounced.starts_with("HTTP/1.1 413 "), "{unannounced}");
}

#[tokio::test]
async fn takes_bodies_within_the_bound() {
    let server = serve(quick()).await;
    let head = "POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n";
    let answer = server.exchange(&format!("{head}{}", "x".repeat(65536))).await;
    assert!(answer.ends_with("65536"), "{answer}");
}

#[tokio::test]
async fn refuses_heads_over_the_bound() {
    let server = serve(quick()).await;
    let answer =
        server.exchange(&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(40_000))).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let many = "X: y\r\n".repeat(101);
    let answer = server.exchange(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn waits_with_the_next_connection_until_one_ends() {
    let server = serve(Bounds { connections: 1, ..Bounds::default() }).await;
    let mut first = server.connect().await;
    first.write_all(ASK).await.unwrap();
    assert!(read_some(&mut first).await.ends_with("ok"));

    let mut second = server.connect().await;
    second.write_all(ASK).await.unwrap();
    assert!(timeout(Duration::from_millis(200), second.readable()).await.is_err(), "served beyond the bound");
    drop(first);
    assert!(read_some(&mut second).await.ends_with("ok"));
}

#[tokio::test]
async fn answers_what_is_in_flight_at_shutdown_and_closes_the_rest() {
    let server = serve(Bounds::default()).await;
    let (mut busy, mut idle, mut fresh) =
        (server.connect().await, server.connect().await, server.connect().await);
    idle.write_all(ASK).await.unwrap();
    read_some(&mut idle).await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    sleep(Duration::from_millis(50)).await;

    server.shutdown.cancel();
    assert_eq!(rest_of(&mut idle).await, "");
    assert_eq!(rest_of(&mut fresh).await, "");
    let answer = rest_of(&mut busy).await;
    assert!(answer.ends_with("late") && answer.contains("connection: close"), "{answer}");
    timeout(Duration::from_secs(5), server.task).await.expect("ends once all is answered").unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_caller_who_stops_waiting_leaves_no_connection_behind() {
    let server = serve(Bounds::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(ASK).await.unwrap();
    read_some(&mut stream).await;
    server.task.abort();
    assert_eq!(rest_of(&mut stream).await, "");
}

#[tokio::test]
async fn closes_connections_that_ask_and_never_read() {
    let server = serve(quick()).await;
    let mut stream = server.connect().await;
    let many = ASK.repeat(1000);
    let ended =
        timeout(Duration::from_secs(10), async { while stream.write_all(&many).await.is_ok() {} }).await;
    assert!(ended.is_ok(), "still open");
}
