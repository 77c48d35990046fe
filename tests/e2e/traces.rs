//! Spans of decisions, at a receiver that speaks OpenTelemetry's own protocol.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::harness::{Answer, LimitsFile, Node, Process, Redis, eventually, send};

/// Takes in whatever is sent.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Vec<ResourceSpans>>>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().extend(request.into_inner().resource_spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Receiver {
    /// Serves on a free port, as long as the runtime is there; where that is.
    fn start(&self, runtime: &Runtime) -> String {
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = TraceServiceServer::new(self.clone());
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        url
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.0.lock().unwrap();
        received.iter().flat_map(|of| &of.scope_spans).flat_map(|of| of.spans.clone()).collect()
    }
}

fn attribute(span: &Span, name: &str) -> Option<Value> {
    span.attributes.iter().find(|pair| pair.key == name)?.value.clone()?.value
}

/// Asks as a part of a trace that is recorded, or is not.
fn ask(agent: &Node, trace: u8, recorded: bool) -> Answer {
    let flags = u8::from(recorded);
    let parent = format!("traceparent: 00-{:032x}-00f067aa0ba902b7-{flags:02x}", u128::from(trace));
    send(agent.address("http"), "GET /allow?key=K", &[&parent], "").unwrap()
}

fn agent(traces: &str, limits: &LimitsFile) -> Node {
    agent_with(traces, limits, &[])
}

fn agent_with(traces: &str, limits: &LimitsFile, more: &[&str]) -> Node {
    let limits = limits.path().display().to_string();
    let args = ["--standalone", "--limits", &limits, "--traces", traces];
    let args: Vec<String> = args.iter().chain(more).map(|&arg| arg.to_owned()).collect();
    Node::start("agent", "agent", &args)
}

fn one_a_minute() -> LimitsFile {
    LimitsFile::new("limits: [{name: quota, per: [key], rate: 1/minute, enforcement: exact}]")
}

#[test]
fn requests_of_recorded_traces_have_a_span_and_others_have_none() {
    let (runtime, receiver, limits) = (Runtime::new().unwrap(), Receiver::default(), one_a_minute());
    let agent = agent(&receiver.start(&runtime), &limits);
    assert_eq!(ask(&agent, 1, true).status, 200);
    assert_eq!(ask(&agent, 2, false).status, 429);
    assert_eq!(ask(&agent, 3, true).status, 429);
    assert_eq!(agent.get("http", "/allow?key=K").unwrap().status, 429);
    eventually("the spans come", Duration::from_secs(15), || {
        let spans = receiver.spans().len();
        (spans < 2).then(|| format!("{spans}"))
    });
    let spans = receiver.spans();
    let told: Vec<_> = spans
        .iter()
        .map(|span| {
            (span.trace_id[15], attribute(span, "headworks.allowed"), attribute(span, "headworks.limit"))
        })
        .collect();
    let quota = || Some(Value::StringValue("quota".to_owned()));
    let decided = |trace, allowed| (trace, Some(Value::BoolValue(allowed)), quota());
    assert_eq!(told, [decided(1, true), decided(3, false)]);
    assert!(spans.iter().all(|span| span.parent_span_id == 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()));
    assert!(spans.iter().all(|span| span.end_time_unix_nano >= span.start_time_unix_nano));
}

#[test]
fn a_question_that_makes_no_sense_has_no_span_with_a_store_either() {
    let (runtime, receiver, redis) = (Runtime::new().unwrap(), Receiver::default(), Redis::start());
    let limits = one_a_minute();
    let agent = agent_with(&receiver.start(&runtime), &limits, &["--store", &redis.url()]);
    let parent = format!("traceparent: 00-{:032x}-00f067aa0ba902b7-01", 9);
    assert_eq!(send(agent.address("http"), "GET /allow", &[&parent], "").unwrap().status, 400);
    assert_eq!(ask(&agent, 1, true).status, 200);
    eventually("the span comes", Duration::from_secs(15), || receiver.spans().is_empty().then(String::new));
    let traces: Vec<u8> = receiver.spans().iter().map(|span| span.trace_id[15]).collect();
    assert_eq!(traces, [1]);
}

#[test]
fn a_receiver_that_is_away_costs_no_answer_and_the_end_is_not_late() {
    let limits = one_a_minute();
    let mut agent = agent("http://127.0.0.1:1", &limits);
    let answers: Vec<u16> = (0..200).map(|_| ask(&agent, 1, true).status).collect();
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1);
    assert!(answers.iter().all(|status| [200, 429].contains(status)));
    agent.process.signal("TERM");
    assert!(agent.process.wait(Duration::from_secs(10)).success());
    let wide = ["agent", "--standalone", "--check", "--limits", &limits.path().display().to_string()];
    for url in ["http://elsewhere:4317", "https://elsewhere:4317"] {
        let refused = Process::run([&wide[..], &["--traces", url]].concat(), Duration::from_secs(5));
        let told =
            ["--traces", "plain text", "run a collector"].iter().all(|text| refused.stderr.contains(text));
        assert!(refused.status.code() == Some(64) && told, "{}", refused.stderr);
    }
}
