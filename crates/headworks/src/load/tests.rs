use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use clap::Parser as _;
use tokio_util::sync::CancellationToken;

use super::tally::Tally;
use super::*;
use crate::serve::{Bounds, Listener, bind_tcp, bind_unix, run as serve};

#[derive(clap::Parser)]
struct Program {
    #[command(flatten)]
    load: LoadArgs,
}

fn args(flags: &str) -> LoadArgs {
    Program::parse_from(format!("load --key K {flags}").split_whitespace()).load
}

/// A server of one route, and its URL.
async fn server(routes: Router) -> String {
    let Listener::Tcp(listener) = bind_tcp("--http", "127.0.0.1:0".parse().unwrap()).await.unwrap() else {
        unreachable!("a TCP listener")
    };
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(Listener::Tcp(listener), routes, Bounds::default(), CancellationToken::new()));
    format!("http://{address}")
}

fn allowing() -> Router {
    Router::new().route("/allow", get(|| async { r#"{"allowed":true}"# }))
}

async fn open(args: &LoadArgs) -> Tally {
    open::run(clients(args).await, args, Instant::now()).await
}

async fn clients(args: &LoadArgs) -> Vec<Arc<Client>> {
    let mut clients = Vec::new();
    for target in &args.targets {
        clients.push(Arc::new(Client::new(target, target.resolve(false).await.unwrap(), &args.query())));
    }
    clients
}

#[tokio::test]
async fn sends_every_request_of_the_schedule() {
    let url = server(allowing()).await;
    let tally = open(&args(&format!("--target {url} --rps 200 --duration 500ms"))).await;
    assert_eq!((tally.total().attempts, tally.total().allowed), (100, 100));
}

#[tokio::test]
async fn takes_several_targets_in_turn() {
    let refusing = Router::new().route(
        "/allow",
        get(|| async { (StatusCode::TOO_MANY_REQUESTS, r#"{"allowed":false,"limit_name":"a"}"#) }),
    );
    let (one, other) = (server(allowing()).await, server(refusing).await);
    let tally = open(&args(&format!("--target {one} --target {other} --rps 100 --duration 500ms"))).await;
    assert_eq!((tally.total().allowed, tally.total().denied), (25, 25));
    assert_eq!(tally.denied_by["a"], 25);
}

#[tokio::test]
async fn speaks_over_unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("agent.sock");
    let listener = bind_unix("--http-unix", &path).unwrap();
    tokio::spawn(serve(listener, allowing(), Bounds::default(), CancellationToken::new()));
    let tally = open(&args(&format!("--target unix:{} --rps 100 --duration 200ms", path.display()))).await;
    assert_eq!(tally.total().allowed, 20);
}

#[tokio::test]
async fn samples_every_request_of_a_timetable() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("agent.sock");
    let listener = bind_unix("--http-unix", &path).unwrap();
    tokio::spawn(serve(listener, allowing(), Bounds::default(), CancellationToken::new()));
    let times: Vec<_> = [0, 3, 3, 40].map(Duration::from_millis).into();
    let samples = sample(&[Target::unix(path)], "K", times.clone(), Instant::now()).await.unwrap();
    let mut due: Vec<_> = samples.iter().map(|sample| sample.due).collect();
    due.sort();
    assert_eq!(due, times);
    assert!(samples.iter().all(|s| s.sent >= s.due && s.allowed == Some(true)), "{samples:?}");
}

#[tokio::test]
async fn a_sample_without_an_answer_has_no_verdict() {
    let nobody = Target::unix("/nonexistent/agent.sock".into());
    let samples = sample(&[nobody], "K", vec![Duration::ZERO], Instant::now()).await.unwrap();
    assert_eq!(samples.iter().map(|sample| sample.allowed).collect::<Vec<_>>(), [None]);
}

#[tokio::test]
async fn a_slow_server_does_not_slow_the_schedule() {
    let slow =
        Router::new().route("/allow", get(|| async { tokio::time::sleep(Duration::from_millis(300)).await }));
    let url = server(slow).await;
    let args = args(&format!("--target {url} --rps 100 --duration 500ms --connections 5 --timeout 2s"));
    let tally = open(&args).await;
    assert_eq!(tally.total().attempts, 50);
    assert_eq!(tally.total().allowed, 10, "five at once, twice");
    assert_eq!(tally.errors_by[&outcome::Failure::Overrun], 40);
}

#[tokio::test]
async fn what_has_no_answer_in_time_is_an_error() {
    let stuck =
        Router::new().route("/allow", get(|| async { tokio::time::sleep(Duration::from_secs(60)).await }));
    let url = server(stuck).await;
    let tally = open(&args(&format!("--target {url} --rps 50 --duration 100ms --timeout 200ms"))).await;
    assert_eq!(tally.errors_by[&outcome::Failure::Timeout], 5);
    assert_eq!(tally.answers(), 0);
}

#[tokio::test]
async fn nobody_listening_is_counted_and_ends_with_failure() {
    let args = args("--target http://127.0.0.1:9 --rps 50 --duration 100ms");
    let tally = open(&args).await;
    assert_eq!(tally.errors_by[&outcome::Failure::Connect], 5);
    assert_eq!(run(args).await.unwrap(), ExitCode::FAILURE);
}

#[tokio::test]
async fn connects_anew_when_a_server_has_closed_an_idle_connection() {
    let Listener::Tcp(listener) = bind_tcp("--http", "127.0.0.1:0".parse().unwrap()).await.unwrap() else {
        unreachable!("a TCP listener")
    };
    let url = format!("http://{}", listener.local_addr().unwrap());
    let bounds = Bounds { silence: Duration::from_millis(100), ..Bounds::default() };
    tokio::spawn(serve(Listener::Tcp(listener), allowing(), bounds, CancellationToken::new()));
    let tally = open(&args(&format!("--target {url} --rps 5 --duration 1s"))).await;
    assert_eq!((tally.total().allowed, tally.total().errors), (5, 0));
}

#[tokio::test]
async fn a_closed_loop_asks_until_time_is_over() {
    let url = server(allowing()).await;
    let args = args(&format!("--target {url} --closed 4 --duration 300ms"));
    let start = Instant::now();
    let tally = closed::run(&clients(&args).await, 4, &args, start).await;
    assert!(start.elapsed() >= args.duration);
    assert!(tally.total().allowed > 10, "{:?}", tally.total());
    assert_eq!(tally.total().attempts, tally.total().allowed);
}
