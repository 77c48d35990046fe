//! A plan of which some entries make no sense: the agent leaves those out, counts them, and goes by all others.

use std::pin::Pin;
use std::time::Duration;

use headworks_proto::wire;
use headworks_proto::wire::tree_server::{Tree, TreeServer};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

use crate::harness::{Figure, Node, eventually};

/// A parent that says one plan to every child.
struct OnePlan(wire::Plan);

type Plans = Pin<Box<dyn tokio_stream::Stream<Item = Result<wire::ParentMessage, Status>> + Send>>;

impl Tree for OnePlan {
    type AttachStream = Plans;

    fn attach<'a: 'f, 'f>(
        &'a self,
        request: Request<Streaming<wire::ChildMessage>>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Plans>, Status>> + Send + 'f>> {
        let message = wire::parent_message::Message::Plan(self.0.clone());
        Box::pin(async move {
            let (plans, outgoing) = tokio::sync::mpsc::channel(1);
            let _ = plans.send(Ok(wire::ParentMessage { message: Some(message) })).await;
            let mut reports = request.into_inner();
            tokio::spawn(async move {
                while reports.next().await.is_some() {}
                drop(plans);
            });
            Ok(Response::new(Box::pin(ReceiverStream::new(outgoing)) as Plans))
        })
    }
}

/// A parent on a free port, while the runtime lives.
fn parent(plan: wire::Plan) -> (Runtime, String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let server = tonic::transport::Server::builder().add_service(TreeServer::new(OnePlan(plan)));
    runtime.spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    (runtime, format!("http://{address}"))
}

fn limit(name: &str) -> wire::Limit {
    let attribute = wire::Attribute { key: "service".to_owned(), value: name.to_owned() };
    wire::Limit {
        name: name.to_owned(),
        r#match: vec![attribute],
        rate: Some(wire::Rate { rate: Some(wire::rate::Rate::Amount(10)), unit: wire::Unit::Second.into() }),
        cost: 1,
        mode: wire::Mode::Enforce.into(),
        on_silence: Some(wire::OnSilence { policy: wire::SilencePolicy::Hold.into(), hold_micros: None }),
        max_buckets: 1,
        missing: wire::Missing::Skip.into(),
        surge_guard_hundredths: Some(0),
        ..wire::Limit::default()
    }
}

/// Seven entries that make no sense: three limits, one name, three headrooms; the last is for a bucket nobody named.
fn plan() -> wire::Plan {
    let whole = |limit: &str| wire::BucketKey { limit: limit.to_owned(), ..wire::BucketKey::default() };
    let named = |number, key| wire::NumberedKey { number, key: Some(key) };
    let later = wire::Limit { mode: 99, ..limit("later") };
    let unit = wire::Rate { unit: 99, ..limit("unit").rate.unwrap() };
    let limits = vec![
        limit("first"),
        limit(""),
        later,
        wire::Limit { rate: Some(unit), ..limit("unit") },
        limit("last"),
    ];
    let headrooms = [(1, 0.5), (2, f32::NAN), (3, -0.5), (4, 1.7), (77, 0.5)];
    wire::Plan {
        incarnation: 1,
        sequence: 1,
        ttl_micros: 60_000_000,
        interval_micros: 1_000_000,
        spacing_micros: 50_000,
        limits_digest: vec![7; 16],
        limits: Some(wire::LimitSet { limits }),
        names: vec![named(1, whole("first")), named(2, whole("")), named(4, whole("last"))],
        shared: Some(wire::Headrooms {
            numbers: headrooms.iter().map(|(number, _)| *number).collect(),
            headroom: headrooms.iter().map(|(_, headroom)| *headroom).collect(),
            tokens: Vec::new(),
        }),
        ..wire::Plan::default()
    }
}

#[test]
fn an_agent_leaves_out_what_makes_no_sense_and_goes_by_the_rest() {
    let (_runtime, url) = parent(plan());
    let agent = Node::start("agent", "a", &["--zone", "a", "--aggregators", &url].map(str::to_owned));
    eventually("the agent goes by the headrooms that make sense", Duration::from_secs(5), || {
        let status = agent.status();
        let drops = status.limit("first").is_some_and(|limit| limit["ratio"] == 0.5);
        (!drops || status.limit("last").is_none() || status.state() != "fresh").then(|| status.0.to_string())
    });
    assert_eq!(agent.status().0["limits"].as_array().unwrap().len(), 2);
    let refused = agent.scrape().value("headworks_refused_entries_total");
    Figure::new("entries refused", refused).is_near(7.0, 0.0);
    for (service, allowed) in [("first", 50), ("last", 100), ("later", 100)] {
        let path = format!("/allow?key=K&service={service}");
        let passed = (0..100).filter(|_| agent.get("http", &path).unwrap().status == 200).count();
        assert!(passed.abs_diff(allowed) <= 1, "{service}: {passed} of 100 passed");
    }
}
