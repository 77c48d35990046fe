//! The agent's gRPC port as any client finds it: what it answers, tells of itself, and bears.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::auth::v3::CheckRequest;
use envoy_types::pb::envoy::service::auth::v3::authorization_client::AuthorizationClient;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::harness::{FleetPlan, LimitsFile, Node, eventually};

const LIMITS: &str = "
limits:
  - {name: per-user, match: {domain: edge}, per: [user], rate: 600/minute, burst: 3, enforcement: exact}
";
const RLS: &str = "envoy.service.ratelimit.v3.RateLimitService";

/// A client of an agent's gRPC port.
struct Client {
    runtime: Runtime,
    channel: Channel,
}

impl Client {
    /// Over TCP, or to a path over a Unix socket.
    fn to(address: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let url =
            if address.starts_with('/') { format!("unix:{address}") } else { format!("http://{address}") };
        let endpoint = Endpoint::from_shared(url).unwrap().timeout(Duration::from_secs(20));
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Self { runtime, channel }
    }

    fn ask(&self, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
        let mut client = RateLimitServiceClient::new(self.channel.clone());
        self.runtime.block_on(client.should_rate_limit(request)).map(tonic::Response::into_inner)
    }

    /// What the request is told, in one word.
    #[track_caller]
    fn code(&self, user: &str) -> Code {
        self.ask(request(vec![descriptor("user", user)])).unwrap().overall_code()
    }

    fn health(&self, service: &str) -> Result<ServingStatus, Status> {
        let mut client = HealthClient::new(self.channel.clone());
        let asked = client.check(HealthCheckRequest { service: service.to_owned() });
        self.runtime.block_on(asked).map(|answer| answer.into_inner().status())
    }

    fn reflect(&self, about: MessageRequest) -> Option<MessageResponse> {
        let mut client = ServerReflectionClient::new(self.channel.clone());
        let asked = ServerReflectionRequest { host: String::new(), message_request: Some(about) };
        self.runtime.block_on(async {
            let answers = client.server_reflection_info(tokio_stream::iter([asked])).await.unwrap();
            answers.into_inner().message().await.unwrap().unwrap().message_response
        })
    }
}

fn descriptor(key: &str, value: &str) -> RateLimitDescriptor {
    let entries = vec![Entry { key: key.to_owned(), value: value.to_owned() }];
    RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }
}

fn request(descriptors: Vec<RateLimitDescriptor>) -> RateLimitRequest {
    RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend: 0 }
}

/// An agent that stands alone, and its limits, with both ports for gRPC in use.
fn agent(folder: &tempfile::TempDir) -> (Node, LimitsFile, String) {
    let limits = LimitsFile::new(LIMITS);
    let (path, socket) = (limits.path().display().to_string(), folder.path().join("envoy.sock"));
    let socket = socket.display().to_string();
    let args = ["--standalone", "--limits", &path, "--grpc", "127.0.0.1:0", "--grpc-unix", &socket];
    (Node::start("agent", "alone", &args.map(str::to_owned)), limits, socket)
}

#[test]
fn tcp_and_unix_socket_share_one_limiter_and_tell_of_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let (mut agent, _limits, socket) = agent(&folder);
    let (tcp, unix) = (Client::to(&agent.process.address_of("grpc")), Client::to(&socket));
    assert_eq!(
        [tcp.code("a"), unix.code("a"), tcp.code("a"), unix.code("a")].map(|code| code as i32),
        [1, 1, 1, 2]
    );
    for service in ["", RLS, "envoy.service.auth.v3.Authorization"] {
        assert_eq!(tcp.health(service).unwrap(), ServingStatus::Serving, "{service}");
    }
    assert_eq!(tcp.health("no.such.Service").unwrap_err().code(), tonic::Code::NotFound);
    let Some(MessageResponse::ListServicesResponse(told)) =
        tcp.reflect(MessageRequest::ListServices(String::new()))
    else {
        panic!("no list of services")
    };
    let names: Vec<_> = told.service.into_iter().map(|service| service.name).collect();
    assert!(
        [RLS, "envoy.service.auth.v3.Authorization"].iter().all(|name| names.contains(&(*name).to_owned()))
    );
    let file = tcp.reflect(MessageRequest::FileContainingSymbol(RLS.to_owned()));
    assert!(matches!(file, Some(MessageResponse::FileDescriptorResponse(_))), "{file:?}");
}

#[test]
fn a_lone_client_that_waits_as_long_as_it_is_told_is_admitted() {
    let folder = tempfile::tempdir().unwrap();
    let (mut agent, _limits, _) = agent(&folder);
    let client = Client::to(&agent.process.address_of("grpc"));
    for _ in 0..3 {
        let refused = (0..50).find_map(|_| {
            let answer = client.ask(request(vec![descriptor("user", "lone")])).unwrap();
            (answer.overall_code() == Code::OverLimit).then_some(answer)
        });
        let wait = refused.unwrap().statuses[0].duration_until_reset.unwrap();
        assert_eq!((wait.seconds, wait.nanos), (1, 0), "ten a second give one within a second");
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(client.code("lone"), Code::Ok);
    }
}

#[test]
fn limits_by_ratio_answer_and_drain_as_over_http() {
    let limits =
        "limits: [{name: banned, match: {user: mallory}, rate: 0/second}, {name: all, rate: 100000/second}]";
    let mut fleet = FleetPlan::new(limits).zones(&[("a", 1)]).agents_with(&["--grpc", "127.0.0.1:0"]).start();
    let agent = &mut fleet.agents[0];
    let client = Client::to(&agent.process.address_of("grpc"));
    eventually("the ban is in force", Duration::from_secs(10), || {
        (client.code("mallory") != Code::OverLimit).then(|| "it passes".to_owned())
    });
    let answer = client.ask(request(vec![descriptor("user", "mallory"), descriptor("user", "ann")])).unwrap();
    let statuses: Vec<_> = answer.statuses.iter().map(|status| status.code()).collect();
    assert_eq!(statuses, [Code::OverLimit, Code::Ok]);
    assert_eq!(answer.statuses[0].duration_until_reset, None, "no wait ends a ban");
    let passed = client.ask(request(vec![descriptor("user", "ann")])).unwrap();
    let limit = passed.statuses[0].current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, &*limit.name), (100_000, "all"));
    agent.process.signal("TERM");
    eventually("it says that it drains", Duration::from_secs(5), || match client.health(RLS) {
        Ok(ServingStatus::Serving) => Some("it still serves".to_owned()),
        _ => None,
    });
}

/// What no client should send, and a message of a size at which nothing is read any more.
fn hostile() -> Vec<RateLimitRequest> {
    vec![
        request(vec![descriptor("user", "a"); 10_000]),
        request(vec![RateLimitDescriptor::default(); 10_000]),
        request(Vec::new()),
        request(vec![RateLimitDescriptor::default()]),
        request(vec![descriptor("us\0er", "a")]),
        RateLimitRequest { domain: String::new(), ..request(vec![descriptor("user", "a")]) },
        RateLimitRequest { domain: "x".repeat(1 << 16), ..request(vec![descriptor("user", "a")]) },
    ]
}

#[test]
fn hostile_messages_get_errors_and_cost_little() {
    let folder = tempfile::tempdir().unwrap();
    let (mut agent, _limits, socket) = agent(&folder);
    let address = agent.process.address_of("grpc");
    let clients = [Client::to(&address), Client::to(&socket)];
    clients.iter().for_each(|client| assert_eq!(client.code("before"), Code::Ok));
    let before = agent.process.resident();
    for client in &clients {
        for (n, request) in hostile().into_iter().enumerate() {
            let refused = client.ask(request).map(|answer| answer.overall_code);
            let code = refused.map_err(|status| status.code());
            assert_eq!(code, Err(tonic::Code::InvalidArgument), "message {n}");
        }
        // What clients of a proxy choose is no error, with which the proxy would let them pass.
        for (value, expected) in
            [(&*"x".repeat(8 << 20), Code::OverLimit), ("nul\0", Code::Ok), ("line\r\nfeed: x", Code::Ok)]
        {
            let answer = client.ask(request(vec![descriptor("user", value)])).unwrap();
            assert_eq!(answer.overall_code(), expected);
        }
        let mut authz = AuthorizationClient::new(client.channel.clone());
        let nothing = client.runtime.block_on(authz.check(CheckRequest::default())).unwrap();
        assert_eq!(
            nothing.into_inner().status.unwrap().code,
            0,
            "a request without attributes meets no limit"
        );
    }
    for nonsense in [
        &b"GET /allow HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        &[0; 1 << 16],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff",
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        let _ = stream.write_all(nonsense);
    }
    let grown = agent.process.resident().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
    assert_eq!(clients[0].code("after"), Code::Ok, "the process lives");
}
