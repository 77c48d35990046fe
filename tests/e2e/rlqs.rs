//! Quotas for real Envoys, with the configuration that ships; and whoever else turns to that port.

use std::fs;
use std::time::Duration;

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use futures_util::{StreamExt, stream};
use tokio::time::timeout;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use crate::LIMIT_400;
use crate::harness::{
    Envoy, Figure, LimitsFile, Link, Load, Loads, Node, Tally, deployed, eventually, free_port, sleep_until,
};

/// How long Envoys may take to come back: their next tick, and a machine with little time.
const BACK: Duration = Duration::from_secs(15);
/// What a message that makes no sense may cost.
const MOST_MEMORY: u64 = 16 * 1024 * 1024;

/// A controller, and an aggregator that hands out quotas.
struct Site {
    controller: Node,
    aggregator: Node,
    /// Host and port for Envoys.
    rlqs: String,
    _limits: LimitsFile,
}

impl Site {
    fn start(limits: &str) -> Self {
        let limits = LimitsFile::new(limits);
        let path = limits.path().display().to_string();
        let controller = Node::start("controller", "controller", &["--limits".to_owned(), path]);
        let args = ["--zone", "a", "--controllers", &controller.url("tree"), "--rlqs", "127.0.0.1:0"];
        let mut aggregator = Node::start("aggregator", "aggregator", &args.map(str::to_owned));
        let rlqs = aggregator.process.address_of("rlqs");
        eventually("the aggregator has a plan", BACK, || {
            let state = aggregator.status().state().to_owned();
            (state != "fresh").then_some(state)
        });
        Self { controller, aggregator, rlqs, _limits: limits }
    }

    #[track_caller]
    fn await_envoys(&self, streams: f64, buckets: f64) {
        eventually("Envoys have one subscription for each bucket", BACK, || {
            let scrape = self.aggregator.scrape();
            let are = ["headworks_rlqs_streams", "headworks_rlqs_buckets"].map(|name| scrape.value(name));
            (are != [streams, buckets]).then(|| format!("{are:?}"))
        });
    }
}

/// The configuration that ships, at free ports.
fn shipped(name: &str, aggregator: &str) -> String {
    let shipped = fs::read_to_string(deployed("envoy/rlqs.yaml")).unwrap();
    let (service, port) = (free_port().to_string(), aggregator.rsplit(':').next().unwrap());
    let changes = [
        ("port_value: 9901", "port_value: 0"),
        ("port_value: 10000", "port_value: 0"),
        ("10001", &service),
        ("value: envoy-1", &format!("value: {name}")),
        ("port_value: 7101", &format!("port_value: {port}")),
    ];
    changes.iter().fold(shipped, |text, (from, to)| {
        assert!(text.contains(from), "no {from:?} in\n{text}");
        text.replace(from, to)
    })
}

fn envoy(name: &str, aggregator: &str) -> Envoy {
    Envoy::start(name, &shipped(name, aggregator), &[])
}

fn load(envoy: &Envoy, rps: f64) -> Load {
    Load::new(&format!("http://{}", envoy.address("front")), rps)
}

#[test]
fn two_envoys_with_uneven_load_hold_one_limit_and_go_on_while_the_aggregator_is_away() {
    let site = Site::start(LIMIT_400);
    let links = [(); 2].map(|()| Link::to(&site.rlqs));
    let envoys: Vec<Envoy> =
        links.iter().zip(["envoy-1", "envoy-2"]).map(|(link, name)| envoy(name, &link.url())).collect();
    let loads: Vec<Load> = envoys.iter().zip([480.0, 120.0]).map(|(envoy, rps)| load(envoy, rps)).collect();
    let loads = Loads::start(&loads, Duration::from_secs(40));

    sleep_until(loads.second(21));
    site.await_envoys(2.0, 2.0);
    let children = site.aggregator.status().0["children"].to_string();
    assert!(children.contains("envoy-1 (edge)") && children.contains("envoy-2 (edge)"), "{children}");
    let heard = site.controller.status().limit("checkout").unwrap().clone();
    Figure::new("demand that the controller hears", heard["offered"].as_f64().unwrap()).is_about(600.0, 0.1);

    links.iter().for_each(Link::cut);
    sleep_until(loads.second(28));
    links.iter().for_each(Link::heal);
    let tallies = loads.finish();
    let all = Tally::sum(&tallies);
    all.has_no_errors();
    Figure::new(&format!("admitted a second\n{all}\n"), all.rate(15..21)).is_about(400.0, 0.1);
    // As long as what they were told last holds; then each would decide by itself.
    Figure::new(&format!("admitted without an aggregator\n{all}\n"), all.rate(22..28)).is_about(400.0, 0.1);
    Figure::new(&format!("admitted of the greater load\n{all}\n"), tallies[0].rate(15..21))
        .is_about(320.0, 0.1);
    site.await_envoys(2.0, 2.0);
    assert!(links.iter().all(|link| link.accepted() >= 2), "Envoys came back");
    let dropped = site.controller.scrape().of_limit("headworks_dropped_total", "checkout");
    assert!(dropped > 1000.0, "{dropped} dropped");
}

#[test]
fn shadow_lets_envoys_pass_all_and_counts_what_it_would_drop() {
    let site = Site::start(&LIMIT_400.replace("400/second", "100/second, mode: shadow"));
    let envoy = envoy("envoy-1", &site.rlqs);
    let all = Tally::sum(&Loads::start(&[load(&envoy, 300.0)], Duration::from_secs(16)).finish());
    assert_eq!(all.total.allowed, all.total.attempts, "{all}");
    let scrape = site.controller.scrape();
    let [dropped, would_drop] = ["headworks_dropped_total", "headworks_would_drop_total"]
        .map(|metric| scrape.of_limit(metric, "checkout"));
    assert_eq!(dropped, 0.0);
    assert!(would_drop > 600.0, "{would_drop} would be dropped");
}

type Answers = tonic::Streaming<RateLimitQuotaResponse>;

/// A stream on which these messages are sent. It stays open: it is the server that has to end it.
async fn talk(rlqs: &str, messages: Vec<RateLimitQuotaUsageReports>) -> Result<Answers, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{rlqs}")).unwrap();
    let mut client = RateLimitQuotaServiceClient::new(endpoint.connect().await.unwrap());
    let messages = stream::iter(messages).chain(stream::pending());
    Ok(client.stream_rate_limit_quotas(messages).await?.into_inner())
}

/// With what error a stream ends; what came before its fault is answered first.
async fn ends(rlqs: &str, messages: Vec<RateLimitQuotaUsageReports>) -> Status {
    let ends = async {
        let mut answers = talk(rlqs, messages).await?;
        while answers.message().await?.is_some() {}
        Ok(())
    };
    let ended: Result<(), Status> = timeout(BACK, ends).await.expect("the stream goes on");
    ended.expect_err("the stream ends without an error")
}

/// The first answer to a good message.
async fn is_served(rlqs: &str) -> bool {
    is_served_behind(rlqs, Vec::new()).await
}

/// The first answer to a good message behind these.
async fn is_served_behind(rlqs: &str, mut messages: Vec<RateLimitQuotaUsageReports>) -> bool {
    messages.push(good());
    let mut answers = talk(rlqs, messages).await.unwrap();
    timeout(BACK, answers.message()).await.unwrap().unwrap().is_some()
}

fn good() -> RateLimitQuotaUsageReports {
    reports("lab", vec![usage(&[("service", "checkout")])])
}

fn usage(pairs: &[(&str, &str)]) -> BucketQuotaUsage {
    let bucket = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    BucketQuotaUsage {
        bucket_id: Some(BucketId { bucket }),
        num_requests_allowed: 1,
        ..BucketQuotaUsage::default()
    }
}

fn reports(domain: &str, usages: Vec<BucketQuotaUsage>) -> RateLimitQuotaUsageReports {
    RateLimitQuotaUsageReports { domain: domain.to_owned(), bucket_quota_usages: usages }
}

#[tokio::test]
async fn messages_that_make_no_sense_get_an_error_and_cost_little() {
    let site = Site::start(LIMIT_400);
    assert!(is_served(&site.rlqs).await);
    let before = site.aggregator.process.resident();
    let invalid = |usages| vec![reports("lab", usages)];
    let hostile = [
        ("no domain", Code::InvalidArgument, vec![reports("", vec![usage(&[("a", "b")])])]),
        ("another domain", Code::InvalidArgument, vec![good(), reports("other", vec![usage(&[("a", "b")])])]),
        ("a huge domain", Code::OutOfRange, vec![reports(&"x".repeat(64 << 20), Vec::new())]),
        ("a huge value", Code::OutOfRange, invalid(vec![usage(&[("a", &"x".repeat(4 << 20))])])),
    ];
    for (what, code, messages) in hostile {
        let status = ends(&site.rlqs, messages).await;
        assert_eq!(status.code(), code, "{what}: {status}");
    }
    // What a client of Envoy can bring about is refused by itself, and the stream goes on.
    for unsound in [
        Vec::new(),
        vec![usage(&[])],
        vec![usage(&[("a", "b\0c")])],
        vec![usage(&[("a\nb", "c")])],
        vec![BucketQuotaUsage::default(); 250_000],
    ] {
        assert!(is_served_behind(&site.rlqs, invalid(unsound)).await);
    }
    let grown = site.aggregator.process.resident().saturating_sub(before);
    assert!(grown < MOST_MEMORY, "{grown} bytes more");
    let refused = site.aggregator.scrape().value("headworks_rlqs_refused_total{cause=\"malformed\"}");
    assert!(refused >= 6.0, "{refused}");
    assert!(is_served(&site.rlqs).await, "all others are served");
}
