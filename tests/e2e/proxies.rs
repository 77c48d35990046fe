//! Real proxies that ask an agent, by the configurations that ship: Envoy's rate limit and external authorization filters, nginx and
//! Caddy.

use crate::harness::{Answer, Envoy, LimitsFile, Node, Page, Proxy, port, send, shipped};

const LIMITS: &str = "
limits:
  - {name: per-user, match: {service: checkout}, per: [user], rate: 3/hour, enforcement: exact}
  - {name: per-client, match: {service: checkout}, per: [client], rate: 5/hour, enforcement: exact}
  - {name: rehearsed, match: {service: checkout}, rate: 1/hour, enforcement: exact, mode: shadow}
  - {name: tokens, match: {cost: tokens}, rate: 20/hour, enforcement: exact}
";

/// An agent that stands alone, with its gRPC port.
fn agent(limits: &LimitsFile, more: &[&str]) -> Node {
    let path = limits.path().display().to_string();
    let args = ["--standalone", "--limits", &path, "--grpc", "127.0.0.1:0"];
    let args: Vec<String> = args.iter().chain(more).map(|arg| (*arg).to_owned()).collect();
    Node::start("agent", "alone", &args)
}

fn envoy(config: &str, agent: &mut Node, page: &Page, changes: &[(&str, &str)]) -> Envoy {
    let grpc = agent.process.address_of("grpc");
    let ports = [
        ("port_value: 10000", "port_value: 0"),
        ("port_value: 8101", &*format!("port_value: {}", port(&grpc))),
        ("port_value: 8080", &*format!("port_value: {}", page.port())),
        // On a machine that does much else, an agent that is there may be late.
        ("timeout: 0.25s", "timeout: 5s"),
    ];
    Envoy::start("envoy", &shipped(config, &[&ports, changes].concat()), &[])
}

fn ask(envoy: &Envoy, head: &[&str]) -> Answer {
    send(&envoy.address("front"), "GET /pay?card=1", head, "").unwrap()
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let start = format!("{name}: ");
    answer.head.lines().find_map(|line| line.strip_prefix(&start))
}

/// Statuses of so many answers.
fn statuses(n: usize, ask: impl Fn() -> Answer) -> Vec<u16> {
    (0..n).map(|_| ask().status).collect()
}

#[track_caller]
fn is_a_refusal(answer: &Answer, limit: &str, longest: u64) {
    assert_eq!(answer.status, 429, "{answer:?}");
    let wait: u64 = header(answer, "retry-after").unwrap_or_else(|| panic!("{answer:?}")).parse().unwrap();
    assert!((1..=longest).contains(&wait), "{answer:?}");
    let told = ["x-ratelimit-limit", "x-ratelimit-remaining"].map(|name| header(answer, name));
    assert_eq!(told, [Some(limit), Some("0")], "{answer:?}");
}

fn answers(node: &Node, service: &str, code: &str) -> f64 {
    node.scrape().value(&format!("headworks_grpc_answers_total{{service=\"{service}\",code=\"{code}\"}}"))
}

#[test]
fn envoy_asks_the_rate_limit_service_and_lets_pass_when_it_is_gone() {
    let (limits, page) = (LimitsFile::new(LIMITS), Page::serve());
    let mut agent = agent(&limits, &[]);
    let mut envoy = envoy("envoy/rls.yaml", &mut agent, &page, &[]);
    let front = envoy.address("front");
    let ann = || send(&front, "GET /", &["x-user: ann"], "").unwrap();
    assert_eq!(statuses(3, ann), [200; 3]);
    is_a_refusal(&ann(), "3", 3600);
    assert_eq!(ask(&envoy, &["x-user: bob"]).status, 200, "another user has a limit of its own");
    let long = format!("x-user: {}", "x".repeat(2000));
    assert_eq!(statuses(4, || ask(&envoy, &[&long])), [200, 200, 200, 429], "a name too long to keep counts");
    let shown = agent.scrape();
    assert!(shown.of_limit("headworks_would_drop_total", "rehearsed") >= 2.0, "shadow counts");
    assert!(shown.of_limit("headworks_dropped_total", "rehearsed") < 0.5, "and lets pass");
    assert_eq!(["ok", "over_limit", "error"].map(|code| answers(&agent, "rls", code)), [7.0, 2.0, 0.0]);
    assert_eq!(envoy.stat("cluster.service.ratelimit.over_limit"), 2);
    assert_eq!(page.asked(), 7, "what is refused does not get through");
    agent.kill();
    assert_eq!(statuses(5, ann), [200; 5], "a proxy whose agent is gone lets pass");
    assert_eq!(envoy.stat("cluster.service.ratelimit.failure_mode_allowed"), 5);
    assert_eq!(envoy.process.ended(), None);
}

/// What the shipped configuration leaves out: hits and limits that come with descriptors, and Envoy's own headers.
const MORE_OF_ENVOY: [(&str, &str); 2] = [
    (
        "rate_limits: # each of these is one descriptor; the entries are attributes",
        "rate_limits:
                                - actions: [{generic_key: {descriptor_key: cost, descriptor_value: tokens}}]
                                  hits_addend: {number: 5}
                                - actions: [{request_headers: {header_name: x-brought, descriptor_key: brought, skip_if_absent: true}}]
                                  limit: {rate_limit: {requests_per_unit: 2, unit: HOUR}}",
    ),
    (
        "timeout: 5s #",
        "enable_x_ratelimit_headers: DRAFT_VERSION_03
                      enable_retry_after_header: true
                      timeout: 5s #",
    ),
];

#[test]
fn envoy_tells_hits_and_limits_of_descriptors_and_makes_headers_of_statuses() {
    let (limits, page) = (LimitsFile::new(LIMITS), Page::serve());
    let mut agent = agent(&limits, &[]);
    let envoy = envoy("envoy/rls.yaml", &mut agent, &page, &MORE_OF_ENVOY);
    let brought = || ask(&envoy, &["x-brought: a"]);
    assert_eq!(statuses(3, brought), [200, 200, 429], "two an hour, as the request says");
    let tokens = ask(&envoy, &[]);
    assert_eq!(header(&tokens, "x-ratelimit-limit"), Some("20, 20;w=3600;name=\"tokens\""), "{tokens:?}");
    assert_eq!(
        header(&tokens, "x-ratelimit-remaining"),
        Some("5"),
        "the refused one was given back: {tokens:?}"
    );
    assert_eq!(ask(&envoy, &[]).status, 200);
    let refused = ask(&envoy, &[]);
    let (wait, reset) = (header(&refused, "retry-after"), header(&refused, "x-ratelimit-reset"));
    assert_eq!((refused.status, wait), (429, reset), "{refused:?}");
    // Five are missing, and the rate gives one in three minutes.
    let wait: u64 = wait.unwrap().parse().unwrap();
    assert!((880..=3600).contains(&wait), "{refused:?}");
    assert_eq!(refused.head.matches("retry-after").count(), 1, "{refused:?}");
}

#[test]
fn envoy_asks_for_external_authorization() {
    let (limits, page) = (LimitsFile::new(LIMITS), Page::serve());
    let mut agent = agent(&limits, &["--attributes-from", "x-user=user", "--client-attribute", "client"]);
    let envoy = envoy("envoy/ext_authz.yaml", &mut agent, &page, &[]);
    let ann = || ask(&envoy, &["x-user: ann"]);
    let first = ann();
    assert_eq!((first.status, header(&first, "x-ratelimit-remaining")), (200, Some("2")), "{first:?}");
    assert_eq!(statuses(2, ann), [200; 2]);
    is_a_refusal(&ann(), "3", 3600);
    assert_eq!(ask(&envoy, &["x-user: bob"]).status, 200);
    assert_eq!(
        statuses(2, || ask(&envoy, &["x-user: cem"])),
        [200, 429],
        "the address is that of one client"
    );
    assert_eq!(["ok", "over_limit", "error"].map(|code| answers(&agent, "ext_authz", code)), [5.0, 2.0, 0.0]);
    assert_eq!(page.asked(), 5);
    agent.kill();
    assert_eq!(statuses(3, ann), [200; 3], "a proxy whose agent is gone lets pass");
}

const CLIENTS: [&str; 4] = ["--client-attribute", "client", "--trusted-proxies", "127.0.0.0/8"];

#[test]
fn nginx_passes_refusals_on_with_their_wait_and_lets_pass_when_the_agent_is_gone() {
    let (limits, page) = (LimitsFile::new(LIMITS), Page::serve());
    let mut agent = agent(&limits, &[&CLIENTS[..], &["--attributes-from", "x-user=user"]].concat());
    let nginx = Proxy::nginx(&page, agent.address("http"));
    let ann = || nginx.get_with("/", &["x-user: ann"]);
    let first = ann();
    assert_eq!((first.status, &*first.body), (200, "page"), "{first:?}");
    assert_eq!(header(&first, "x-ratelimit-remaining"), Some("2"), "{first:?}");
    assert_eq!(statuses(2, ann), [200; 2]);
    is_a_refusal(&ann(), "3", 3600);
    assert_eq!(statuses(3, || nginx.get("/")), [200, 200, 429], "five of one address");
    assert_eq!(nginx.get_with("/", &[&format!("x-user: {}", "x".repeat(2000))]).status, 403);
    assert_eq!(page.asked(), 5);
    agent.kill();
    assert_eq!(statuses(3, ann), [200; 3], "a proxy whose agent is gone lets pass");
}

#[test]
fn caddy_passes_refusals_on_with_their_wait() {
    let (limits, page) = (LimitsFile::new(LIMITS), Page::serve());
    let agent = agent(&limits, &[&CLIENTS[..], &["--attributes-from", "x-user=user"]].concat());
    let caddy = Proxy::caddy(&page, agent.address("http"));
    let ann = || caddy.get_with("/", &["x-user: ann"]);
    assert_eq!(statuses(3, ann), [200; 3]);
    is_a_refusal(&ann(), "3", 3600);
    assert_eq!(statuses(3, || caddy.get("/")), [200, 200, 429], "five of one address");
    assert_eq!(page.asked(), 5);
}

#[test]
fn who_is_no_trusted_proxy_speaks_for_itself() {
    let limits = LimitsFile::new("limits: [{name: each, per: [client], rate: 10/hour, enforcement: exact}]");
    let passed = |node: &Node, forwarded: &dyn Fn(usize) -> String| {
        let ask = |n| send(node.address("http"), "GET /allow", &[&forwarded(n)], "").unwrap().status;
        (0..30).map(ask).filter(|status| *status == 200).count()
    };
    let from = |n: usize| format!("X-Forwarded-For: 203.0.113.{n}");
    let alone = agent(&limits, &CLIENTS[..2]);
    assert_eq!(passed(&alone, &from), 10, "one client, whatever it says");
    let behind = agent(&limits, &CLIENTS);
    assert_eq!(passed(&behind, &from), 30, "thirty clients of a trusted proxy");
    assert_eq!(
        passed(&behind, &|n| format!("X-Forwarded-For: 1.1.1.{n}, [2001:db8::{n}]:443")),
        10,
        "one network"
    );
    assert_eq!(
        passed(&behind, &|n| format!("X-Forwarded-For: ::ffff:203.0.113.{n}, unknown")),
        10,
        "the proxy's own"
    );
}

#[test]
fn what_ships_for_envoy_is_valid_as_it_is() {
    for config in ["envoy/rls.yaml", "envoy/ext_authz.yaml"] {
        let ended = Envoy::validate(&shipped(config, &[]), &[]);
        assert!(ended.status.success(), "{config}: {}", ended.stderr);
    }
}
