//! A bare tonic server that speaks the tree's messages and keeps nothing: what a parent costs at least.

use std::pin::Pin;

use clap::Args;
use futures_util::{Stream, StreamExt as _};
use headworks_core::link::{INTERVAL, SPACING};
use headworks_core::message::Incarnation;
use headworks_proto::wire::{self, child_message, parent_message};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::failure::Failure;

/// What the bench asks of the echo. Nobody else calls it.
#[derive(Clone, Debug, Args)]
pub(crate) struct EchoArgs {
    #[arg(long)]
    listen: std::net::SocketAddr,
}

/// Serves until the process is killed.
pub(crate) async fn echo(args: &EchoArgs) -> Result<(), Failure> {
    let listener = TcpListener::bind(args.listen).await?;
    tracing::info!(what = "tree", address = %listener.local_addr()?, "listening");
    let service =
        wire::tree_server::TreeServer::new(Echo { incarnation: headworks_agent::draw_incarnation() });
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let served = tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming).await;
    served.map_err(|error| Failure::Failed(error.to_string()))
}

struct Echo {
    incarnation: Incarnation,
}

type Plans = Pin<Box<dyn Stream<Item = Result<wire::ParentMessage, Status>> + Send>>;

impl wire::tree_server::Tree for Echo {
    type AttachStream = Plans;

    fn attach<'a: 'f, 'f>(
        &'a self,
        request: Request<Streaming<wire::ChildMessage>>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Plans>, Status>> + Send + 'f>> {
        let incarnation = self.incarnation;
        Box::pin(async move {
            let mut numbers = 0;
            let plans = request.into_inner().filter_map(move |message| {
                let answer = match message.map(|message| message.message) {
                    Ok(Some(child_message::Message::Report(report))) => {
                        Some(Ok(answer(incarnation, &report, &mut numbers)))
                    }
                    Ok(_) => None,
                    Err(status) => Some(Err(status)),
                };
                async move { answer }
            });
            Ok(Response::new(Box::pin(plans) as Plans))
        })
    }
}

/// A plan that numbers what the report names, and has a headroom for each bucket that it counts by number.
fn answer(incarnation: Incarnation, report: &wire::Report, numbers: &mut u32) -> wire::ParentMessage {
    let name = |key: &wire::BucketKey| {
        *numbers += 1;
        wire::NumberedKey { number: *numbers, key: Some(key.clone()) }
    };
    let names: Vec<wire::NumberedKey> = report.named.iter().map(name).collect();
    let new = names.iter().map(|name| name.number);
    let told: Vec<u32> = report.numbers.iter().copied().chain(new).collect();
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let plan = wire::Plan {
        incarnation: incarnation.0,
        sequence: report.sequence,
        heard: report.sequence,
        ttl_micros: micros(5 * INTERVAL),
        interval_micros: micros(INTERVAL),
        spacing_micros: micros(SPACING),
        view: Some(wire::View::default()),
        limits_digest: vec![0; 16],
        names,
        private: Some(wire::Headrooms { headroom: vec![0.5; told.len()], numbers: told, tokens: Vec::new() }),
        forgets: true,
        ..wire::Plan::default()
    };
    wire::ParentMessage { message: Some(parent_message::Message::Plan(plan)) }
}
