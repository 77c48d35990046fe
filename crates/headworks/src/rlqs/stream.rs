//! One stream: an Envoy that asks for one domain.

use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse;
use headworks_agent::{Clock, draw_incarnation, settings};
use headworks_core::agent::Identity;
use headworks_core::message::Plan;
use headworks_core::quota::Proxy;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status};

use super::Site;
use super::codec::{Answers, Bounded, Reports};
use super::counters::Open;
use super::wire::{self, Malformed};
use crate::tree::{Attached, Input, Pace, PlanBox, StreamId, Visitor};

/// Tells which Envoy it is, if Envoy's configuration has it among the initial metadata of the service.
const NODE: &str = "x-headworks-node";
/// How often what is due is looked for: reports upwards each second, and answers that had no room.
const BEAT: Duration = Duration::from_millis(200);

/// Messages to Envoy under way: all that one look at its buckets makes. The next look waits until these are gone, so that a slow
/// Envoy gets the newest state, and never a queue.
const UNDER_WAY: usize = 32;

/// Opens a stream: all that is to be known before its first message.
pub(super) fn open(site: &Arc<Site>, request: Request<Reports>) -> Result<Answers, Status> {
    let visitor = Visitor::of(&request)?;
    let node = node(&request, &visitor)?;
    let open = Open::new(site.counters.clone());
    let open = open.ok_or_else(|| Status::resource_exhausted("too many streams: run more aggregators"))?;
    let (outgoing, answers) = mpsc::channel(UNDER_WAY);
    let mut reports = request.into_inner();
    let site = site.clone();
    tokio::spawn(async move {
        let told = async {
            let Some(first) = reports.message().await? else { return Ok(()) };
            let domain = wire::domain(&first)?;
            let talk = Talk::new(&site, &node, domain, visitor.attach(), open, outgoing.clone());
            talk.hold(first, &mut reports).await
        };
        if let Some(Err(status)) = site.shutdown.run_until_cancelled(told).await {
            site.counters.note_end(&status);
            let _ = outgoing.send(Err(status)).await;
        }
    });
    Ok(ReceiverStream::new(answers))
}

/// What it is called: by its configuration, else by its address.
fn node(request: &Request<Reports>, visitor: &Visitor) -> Result<String, Status> {
    let Some(told) = request.metadata().get(NODE) else { return Ok(format!("envoy {}", visitor.peer())) };
    let text = told.to_str().map_err(|_| "write a name in ASCII".to_owned());
    let name = text.and_then(settings::name);
    name.map_err(|advice| Status::invalid_argument(format!("{NODE}: {advice}")))
}

/// A stream whose Envoy has said for which domain it asks.
struct Talk<'s> {
    site: &'s Site,
    clock: Clock,
    proxy: Proxy,
    /// As operators know it.
    name: String,
    domain: String,
    attached: Attached,
    open: Open,
    outgoing: mpsc::Sender<Result<RateLimitQuotaResponse, Status>>,
    /// Entries of plans that made no sense, and were not told of yet.
    refused: u32,
    /// The log says that buckets of it are refused.
    doubted: bool,
}

impl<'s> Talk<'s> {
    fn new(
        site: &'s Site,
        node: &str,
        domain: String,
        attached: Attached,
        open: Open,
        outgoing: mpsc::Sender<Result<RateLimitQuotaResponse, Status>>,
    ) -> Self {
        let clock = Clock::new();
        // An Envoy has a stream for each domain, and each of them is a child.
        let name = format!("{node} ({domain})");
        let identity = Identity {
            node: name.clone(),
            incarnation: draw_incarnation(),
            zone: site.zone.clone(),
            region: site.region.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let proxy = Proxy::new(identity, domain.clone(), site.hold, clock.now());
        Self { site, clock, proxy, name, domain, attached, open, outgoing, refused: 0, doubted: false }
    }

    /// Goes on until Envoy leaves; an error, if it breaks off or says what makes no sense.
    async fn hold(mut self, first: Bounded, reports: &mut Reports) -> Result<(), Status> {
        let (into, plans) = mpsc::channel(1);
        let stream = self.site.handle.greet(self.proxy.hello(), PlanBox::Here(into)).await;
        let ended = match self.hear(first) {
            Ok(_) => self.converse(reports, plans, stream).await,
            Err(malformed) => Err(malformed.into()),
        };
        self.site.handle.send(Input::Gone { stream }).await;
        ended
    }

    async fn converse(
        &mut self,
        reports: &mut Reports,
        mut plans: mpsc::Receiver<Box<Plan>>,
        stream: StreamId,
    ) -> Result<(), Status> {
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut pace = Pace::new(Instant::now());
        let mut readable = Instant::now();
        loop {
            self.speak(stream).await;
            tokio::select! {
                () = self.attached.visitor().left() => return Ok(()),
                plan = plans.recv() => match plan {
                    Some(plan) => self.refused += self.proxy.plan(*plan, self.clock.now()),
                    None => return Ok(()),
                },
                // Not to read is to slow Envoy: its messages stay in its own process.
                message = reports.message(), if Instant::now() >= readable => match message? {
                    Some(message) => {
                        let entries = self.hear(message)?;
                        if let Some(wait) = pace.wait(Instant::now(), entries) {
                            self.attached.visitor().note_throttled();
                            readable = Instant::now() + wait;
                        }
                    }
                    None => return Ok(()),
                },
                _ = beat.tick() => {}
            }
        }
    }

    /// Takes in a message; how many buckets it told of.
    fn hear(&mut self, message: Bounded) -> Result<usize, Malformed> {
        let left_out = message.left_out;
        let usages = wire::usages(message, &self.domain)?;
        let (entries, now) = (usages.len() + left_out, self.clock.now());
        if left_out > 0 {
            self.site.counters.note_unsound(left_out);
            self.doubt(&"there are more than may be, or their ids are no UTF-8");
        }
        for (id, usage) in usages {
            match usage.map(|usage| self.proxy.usage(id.clone(), usage, now)) {
                Ok(Ok(())) => {}
                Ok(Err(refused)) => {
                    self.site.counters.note(refused);
                    self.doubt(&refused);
                }
                Err(unsound) => {
                    self.proxy.give_up(id);
                    self.site.counters.note_unsound(1);
                    self.doubt(&unsound);
                }
            }
        }
        self.open.has(self.proxy.buckets());
        Ok(entries)
    }

    fn doubt(&mut self, cause: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.doubted, true) {
            let (envoy, cause) = (self.name.as_str(), cause.to_string());
            tracing::warn!(envoy, cause, "requests of some buckets pass; more of them are only counted");
        }
    }

    /// Says what is due: upwards what was counted, to Envoy what it may let pass.
    async fn speak(&mut self, stream: StreamId) {
        let now = self.clock.now();
        if let Some(report) = self.proxy.report(now) {
            let refused = std::mem::take(&mut self.refused);
            self.site.handle.send(Input::Report { stream, report, refused }).await;
            self.open.has(self.proxy.buckets());
        }
        if self.outgoing.capacity() == UNDER_WAY {
            for response in wire::responses(self.proxy.actions(now)) {
                // An Envoy that is gone needs no answer.
                let _ = self.outgoing.try_send(Ok(response));
            }
        }
    }
}
