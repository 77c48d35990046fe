//! The agent inside a real Envoy, with the configuration that ships.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{
    Authority, Envoy, Figure, Fleet, FleetPlan, Load, Loads, Process, Secret, Tally, connect, deployed,
    eventually, free_port, module_folder, send, sleep_until,
};

/// How long a limit, a count or an update may take to arrive.
const SOON: Duration = Duration::from_secs(15);
/// The attributes that ship.
const ATTRIBUTES: &str = "attributes:
                            - {name: service, from: {constant: checkout}}
                            - {name: caller, from: {header: x-caller}}
                            - {name: section, from: {path_prefix: [/api, /static]}}
";
/// The only route that ships.
const ROUTES: &str = "[{name: everything, match: {prefix: /}, route: {cluster: service}}]";

/// The configuration that ships, at free ports, in a zone.
fn shipped(zone: &str, aggregator: &str) -> String {
    let shipped = fs::read_to_string(deployed("envoy/module.yaml")).unwrap();
    let service = free_port().to_string();
    [
        ("port_value: 9901", "port_value: 0"),
        ("port_value: 10000", "port_value: 0"),
        ("10001", &service),
        ("zone: a", &format!("zone: {zone}")),
        ("http://127.0.0.1:7100", aggregator),
    ]
    .iter()
    .fold(shipped, |text, (from, to)| changed(&text, from, to))
}

/// The same with something else in the place of a part that must be there.
#[track_caller]
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no {from:?} in\n{text}");
    text.replace(from, to)
}

fn start(name: &str, yaml: &str) -> Envoy {
    Envoy::start(name, yaml, &variables())
}

fn variables() -> [(&'static str, &'static str); 1] {
    let folder: &str = module_folder().leak();
    [("ENVOY_DYNAMIC_MODULES_SEARCH_PATH", folder)]
}

/// Zones with an aggregator each and no agents, held to these limits.
fn fleet(limits: &str, zones: &[&'static str]) -> Fleet {
    let zones: Vec<_> = zones.iter().map(|zone| (*zone, 0)).collect();
    FleetPlan::new(limits).zones(&zones).start()
}

#[track_caller]
fn await_agents(fleet: &Fleet, agents: u64) {
    eventually("the controller hears the Envoys", SOON, || {
        let heard = fleet.controller.status().agents();
        (heard != agents).then(|| format!("{heard} of {agents}"))
    });
}

/// Waits until a statistic of the module has a value.
#[track_caller]
fn await_stat(envoy: &Envoy, name: &str, value: u64) {
    eventually(name, SOON, || {
        let is = envoy.stat(&format!("headworks.{name}"));
        (is != value).then(|| format!("{is}, not {value}"))
    });
}

/// The status of the answer to a request, whose bytes may be any.
fn status_of(mut stream: impl Read + Write, start: &str, header: &[u8]) -> u16 {
    let head = format!("{start} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    stream.write_all(&[head.as_bytes(), header, b"\r\n\r\n"].concat()).unwrap();
    let mut answer = Vec::new();
    // A connection over TLS that ends without a farewell is as good as one with.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn two_envoys_hold_one_limit_and_answer_all_while_aggregators_are_away() {
    let mut fleet = fleet(LIMIT_400, &["a", "b"]);
    let envoys: Vec<Envoy> = ["a", "b"]
        .iter()
        .zip(&fleet.aggregators)
        .map(|(zone, aggregator)| {
            let yaml = shipped(zone, &aggregator.url("tree"));
            start(
                &format!("envoy-{zone}"),
                &changed(&yaml, "attributes:", "hold: 4s\n                          attributes:"),
            )
        })
        .collect();
    await_agents(&fleet, 2);
    envoys.iter().for_each(|envoy| await_stat(envoy, "limits", 1));
    let url = |envoy: &Envoy| format!("http://{}", envoy.address("front"));
    let loads: Vec<Load> =
        envoys.iter().zip([400.0, 200.0]).map(|(envoy, rps)| Load::new(&url(envoy), rps)).collect();
    let loads = Loads::start(&loads, Duration::from_secs(28));
    sleep_until(loads.second(10));
    fleet.aggregators.iter_mut().for_each(|aggregator| aggregator.kill());
    let tallies = loads.finish();
    let all = Tally::sum(&tallies);
    all.has_no_errors();
    Figure::new(&format!("admitted a second\n{all}\n"), all.rate(2..10)).is_about(400.0, 0.03);
    Figure::new(&format!("admitted in the hold\n{all}\n"), all.rate(10..13)).is_about(400.0, 0.05);
    let open = all.during(25..28);
    assert_eq!(open.allowed, open.attempts, "the hold is over, and everything passes\n{all}");
    for (envoy, tally) in envoys.iter().zip(&tallies) {
        await_stat(envoy, "admitted.limit.checkout", tally.total.allowed);
        await_stat(envoy, "dropped.limit.checkout", tally.total.denied);
        await_stat(envoy, "failing_open", 1);
        assert!(envoy.stat("headworks.passed_failing_open") > 0);
        await_stat(envoy, "panics", 0);
    }
}

#[test]
fn each_attribute_is_what_the_configuration_says() {
    let ban =
        |name: &str, matched: &str| format!("  - {{name: {name}, match: {{{matched}}}, rate: 0/second}}\n");
    let bans = [
        ban("by-header", "caller: mallory"),
        ban("by-section", "section: /static"),
        ban("by-route", "route: pay"),
        ban("by-cluster", "cluster: elsewhere"),
        ban("by-method", "method: DELETE"),
        ban("by-constant", "service: checkout").replace("}\n", ", mode: shadow, order: 1}\n"),
    ];
    let fleet = fleet(&format!("limits:\n{}", bans.concat()), &["a"]);
    let routes = "[{name: pay, match: {prefix: /pay}, route: {cluster: service}}, \
        {match: {prefix: /elsewhere}, route: {cluster: elsewhere}}, {match: {prefix: /}, route: {cluster: service}}]";
    let more = format!(
        "{ATTRIBUTES}                            - {{name: route, from: route}}
                            - {{name: cluster, from: cluster}}
                            - {{name: method, from: method}}
"
    );
    let yaml = changed(&shipped("a", &fleet.aggregators[0].url("tree")), ATTRIBUTES, &more);
    let elsewhere = "clusters:\n    - {name: elsewhere, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: elsewhere}}\n";
    let yaml = changed(&changed(&yaml, ROUTES, routes), "clusters:\n", elsewhere);
    let envoy = start("envoy", &yaml);
    await_stat(&envoy, "limits", 6);
    let front = envoy.address("front");
    let ask = |start: &str, header: &[u8]| status_of(TcpStream::connect(&front).unwrap(), start, header);

    assert_eq!(ask("GET /", b"x-caller: web"), 200);
    assert_eq!(ask("GET /", b"X-Caller: mallory"), 429);
    assert_eq!(ask("GET /", b"x-caller: mall\xffory"), 200);
    assert_eq!(ask("GET /", format!("x-caller: {}", "m".repeat(2000)).as_bytes()), 200);
    assert_eq!(ask("GET /static/logo.png?x", b"x-caller: web"), 429);
    assert_eq!(ask("GET /api/../static/logo.png", b"x-caller: web"), 429);
    assert_eq!(ask("GET /statics", b"x-caller: web"), 200);
    assert_eq!(ask("GET /pay", b"x-caller: web"), 429);
    assert_eq!(ask("GET /elsewhere", b"x-caller: web"), 429);
    assert_eq!(ask("DELETE /", b"x-caller: web"), 429);

    let refused = send(&front, "DELETE /", &[], "a body").unwrap();
    assert_eq!((refused.status, refused.body.as_str()), (429, "too many requests\n"));
    assert!(
        refused.head.contains("x-ratelimit-limit: 0\r\n") && !refused.head.contains("retry-after"),
        "{refused:?}"
    );

    for (limit, dropped) in
        [("by-header", 1), ("by-section", 2), ("by-route", 1), ("by-cluster", 1), ("by-method", 2)]
    {
        await_stat(&envoy, &format!("dropped.limit.{limit}"), dropped);
    }
    // All that no other limit took.
    await_stat(&envoy, "would_drop.limit.by-constant", 4);
    await_stat(&envoy, "dropped.limit.by-constant", 0);
    await_stat(&envoy, "values_not_utf8", 1);
    await_stat(&envoy, "values_too_long", 1);
}

#[test]
fn a_client_is_who_its_certificate_says() {
    let peer = "spiffe://headworks.test/headworks/agent";
    let limits = format!("limits:\n  - {{name: by-peer, match: {{peer: '{peer}'}}, rate: 0/second}}\n");
    let fleet = fleet(&limits, &["a"]);
    let authority = Authority::new("of the mesh");
    let secret = Secret::new(&authority.issue("controller"), &authority.pem);
    let file = |name: &str| secret.path(name).display().to_string();
    let tls = format!(
        "- transport_socket: {{name: tls, typed_config: {{'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, \
         common_tls_context: {{tls_certificates: [{{certificate_chain: {{filename: {}}}, private_key: {{filename: {}}}}}], \
         validation_context: {{trusted_ca: {{filename: {}}}}}}}}}}}\n          filters:\n",
        file("tls.crt"),
        file("tls.key"),
        file("ca.crt"),
    );
    let yaml = shipped("a", &fleet.aggregators[0].url("tree"));
    let yaml = changed(&yaml, ATTRIBUTES, "attributes: [{name: peer, from: peer_identity}]\n");
    let envoy = start("envoy", &yaml.replacen("- filters:\n", &tls, 1));
    await_stat(&envoy, "limits", 1);
    let front = envoy.address("front");
    let ask = |role: &str| {
        let issued = authority.issue(role);
        status_of(connect(&front, &authority, Some(&issued)).unwrap(), "GET /", b"")
    };
    assert_eq!((ask("agent"), ask("aggregator")), (429, 200));
    assert_eq!(status_of(connect(&front, &authority, None).unwrap(), "GET /", b""), 200);
}

#[test]
fn everything_passes_where_no_plan_ever_came() {
    // Nobody listens there.
    let envoy = start("envoy", &shipped("a", "http://127.0.0.1:1"));
    let front = envoy.address("front");
    for _ in 0..3 {
        assert_eq!(status_of(TcpStream::connect(&front).unwrap(), "GET /", b"x-caller: web"), 200);
    }
    await_stat(&envoy, "passed_failing_open", 3);
    await_stat(&envoy, "failing_open", 1);
    await_stat(&envoy, "limits", 0);
}

/// What is wrong with a configuration is in Envoy's log, with what to do about it.
#[test]
fn a_faulty_configuration_is_refused_and_says_why() {
    let good = shipped("a", "http://127.0.0.1:1");
    let validated = Envoy::validate(&good, &variables());
    assert!(validated.status.success(), "{}", validated.stderr);
    for (from, to, told) in [
        ("zone: a", "zones: a", "unknown field `zones`, expected one of"),
        ("zone: a\n", "region: eu\n", "no `zone`: give it there, or as HEADWORKS_ZONE"),
        (
            "{header: x-caller}",
            "{haeder: x-caller}",
            "at `attributes[1].from`: unknown variant `haeder`, expected one of",
        ),
        (
            "http://127.0.0.1:1",
            "http://elsewhere:1",
            "at `aggregators[0]`: http://elsewhere:1 is on another machine",
        ),
    ] {
        let refused = Envoy::validate(&changed(&good, from, to), &variables());
        assert!(!refused.status.success(), "{to} was taken");
        assert!(refused.stderr.contains(told), "{to}: no {told:?} in\n{}", refused.stderr);
    }
}

/// Listeners that come by a file, so that they can change while Envoy runs.
struct Listeners {
    folder: tempfile::TempDir,
    /// One listener, as it ships.
    front: String,
}

impl Listeners {
    /// The listener of the shipped configuration, and the rest of it.
    fn taken_from(yaml: &str) -> (Self, String) {
        let (start, end) = (yaml.find("    - name: front").unwrap(), yaml.find("    # Stands for").unwrap());
        let front: String = yaml[start..end].lines().map(|line| format!("{}\n", &line[4..])).collect();
        let listeners = Self { folder: tempfile::tempdir().unwrap(), front };
        let path = listeners.folder.path().join("listeners.yaml").display().to_string();
        let rest = format!(
            "node: {{id: edge, cluster: edge}}\ndynamic_resources: {{lds_config: {{path_config_source: {{path: {path}}}}}}}\n{}{}",
            &yaml[..start],
            &yaml[end..]
        );
        (listeners, rest)
    }

    /// Two listeners, which differ in name and in nothing else.
    fn put(&self, front: &str) {
        let named = |name: &str| {
            let typed =
                format!("- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n  name: {name}");
            changed(front, "- name: front", &typed)
        };
        let next = self.folder.path().join("next");
        fs::write(&next, format!("resources:\n{}{}", named("front"), named("back"))).unwrap();
        fs::rename(next, self.folder.path().join("listeners.yaml")).unwrap();
    }
}

#[test]
fn listeners_and_their_updates_share_one_agent() {
    let fleet = fleet("limits:\n  - {name: checkout, match: {service: checkout}, rate: unlimited}\n", &["a"]);
    let (listeners, rest) = Listeners::taken_from(&shipped("a", &fleet.aggregators[0].url("tree")));
    listeners.put(&listeners.front);
    let mut envoy = start("envoy", &rest);
    await_stat(&envoy, "limits", 1);
    let lds = |what: &str| envoy.stat(&format!("listener_manager.lds.{what}"));
    let ask = |listener: &str| {
        (0..5).for_each(|_| {
            let front = TcpStream::connect(envoy.address(listener)).unwrap();
            assert_eq!(status_of(front, "GET /", b"x-caller: web"), 200);
        });
    };
    ask("front");
    ask("back");
    await_stat(&envoy, "admitted.limit.checkout", 10);

    let updates = lds("update_success");
    listeners.put(&changed(&listeners.front, "x-caller", "x-client"));
    eventually("the update is taken", SOON, || (lds("update_success") == updates).then(String::new));
    ask("front");
    ask("back");
    await_stat(&envoy, "admitted.limit.checkout", 20);

    listeners.put(&changed(&listeners.front, "zone: a", "zones: a"));
    eventually("the fault is refused", SOON, || (lds("update_rejected") == 0).then(String::new));
    let told = envoy.process.stderr.whole();
    assert!(told.contains("unknown field `zones`"), "{told}");
    ask("back");
    await_stat(&envoy, "admitted.limit.checkout", 25);

    let attached = fleet.aggregators[0].says("child attached");
    assert_eq!(
        (attached, fleet.controller.status().agents()),
        (1, 1),
        "one agent, whatever becomes of its filters"
    );
    envoy.process.signal("TERM");
    let ended = envoy.process.wait(SOON);
    assert!(ended.success(), "{ended}");
    await_agents(&fleet, 0);
}

#[test]
fn the_script_gives_the_program_what_it_takes() {
    let script = fs::read_to_string(deployed("envoy/try.sh")).unwrap();
    let lines = script.lines().filter_map(|line| line.strip_prefix("target/release/headworks "));
    let roles: Vec<_> = lines.filter_map(|line| line.strip_suffix(" &")).collect();
    assert_eq!(roles.len(), 2, "{script}");
    for role in roles {
        let args = role.replace("deploy/envoy", &deployed("envoy").display().to_string());
        let checked = Process::run(args.split(' ').chain(["--check"]), SOON);
        assert!(checked.status.success(), "{role}: {}", checked.stderr);
    }
}
