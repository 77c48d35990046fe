//! What is particular to the owner of a zone, and of a fleet.

use std::sync::Arc;

use headworks_agent::uplink::{Event, Outbox};
use headworks_core::fleet::Fleet;
use headworks_core::ladder::PlanState;
use headworks_core::limits::{Digest, LimitSet};
use headworks_core::node::Node;
use headworks_core::units::Moment;
use headworks_core::zone::{Disagreement, Zone};
use tokio::sync::oneshot;

use super::held::{Applied, Held, HoldBack, Holding};

/// A node in its process, with what is around it there.
pub(crate) trait Seat: Send + 'static {
    /// The state machine.
    type Node: Node;
    /// What reaches it besides its children.
    type Event: Send;

    fn node(&self) -> &Self::Node;
    fn node_mut(&mut self) -> &mut Self::Node;
    /// Takes in what only this kind of node knows.
    fn take(&mut self, event: Self::Event, now: Moment);
    /// One interval.
    fn tick(&mut self, now: Moment);
    /// Reports upwards what is due.
    fn speak(&mut self, now: Moment);
    /// Says its last words.
    fn leave(&mut self, now: Moment);
    /// What its children, and its parents, said that was not taken as they said it.
    fn doubts(&self) -> Doubts;
    /// The same, to count more.
    fn doubts_mut(&mut self) -> &mut Doubts;
}

/// Entries of messages that were not taken as they came; both numbers only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// They made no sense.
    pub(crate) refused: u64,
    /// They told of more than is plausible, and counted as what is.
    pub(crate) clipped: u64,
}

/// What reaches a controller besides its children.
pub(crate) enum Change {
    /// Other limits; `confirmed` if their file says that they are meant as they stand.
    Limits { limits: Arc<LimitSet>, confirmed: bool },
    /// The limits of this digest are meant, though they were held back.
    Apply { digest: Digest, applied: oneshot::Sender<Applied> },
    /// The fleet's switch is thrown here, at this many seconds since 1970.
    ShadowAll { on: bool, at: u64 },
}

/// A controller: a fleet, and limits that may change.
pub(crate) struct FleetSeat {
    pub(crate) fleet: Fleet,
    holding: Holding,
    told_shadow: bool,
    doubts: Doubts,
}

impl FleetSeat {
    pub(crate) fn new(fleet: Fleet, hold_back: HoldBack) -> Self {
        let holding = Holding { rule: hold_back, ..Holding::default() };
        Self { fleet, holding, told_shadow: false, doubts: Doubts::default() }
    }

    /// When limits are held back.
    pub(crate) fn hold_back(&self) -> HoldBack {
        self.holding.rule
    }

    /// The limits that are held back.
    pub(crate) fn held(&self) -> Option<&Held> {
        self.holding.held.as_ref()
    }

    /// How many sets of limits were held back so far.
    pub(crate) fn times_held(&self) -> u64 {
        self.holding.times
    }

    fn apply(&mut self, digest: Digest, now: Moment) -> Applied {
        if let Some(limits) = self.holding.take(digest) {
            tracing::info!(%digest, "limits that were held back are confirmed by an admin request");
            self.install(limits, now);
            return Applied::Now;
        }
        if self.fleet.limits().digest() == digest { Applied::Already } else { Applied::NotHeld }
    }

    fn install(&mut self, limits: Arc<LimitSet>, now: Moment) {
        self.fleet.install(limits, now);
        let (limits, generation) = (self.fleet.limits(), self.fleet.generation());
        tracing::info!(limits = limits.limits().len(), generation, digest = %limits.digest(), "limits in force");
    }
}

impl Seat for FleetSeat {
    type Node = Fleet;
    type Event = Change;

    fn node(&self) -> &Fleet {
        &self.fleet
    }

    fn node_mut(&mut self) -> &mut Fleet {
        &mut self.fleet
    }

    fn take(&mut self, change: Change, now: Moment) {
        match change {
            Change::Limits { limits, confirmed } => {
                if self.holding.judge(&self.fleet, &limits, confirmed, now) {
                    self.install(limits, now);
                }
            }
            Change::Apply { digest, applied } => {
                // Whoever asked may have gone; the limits are in force all the same.
                let _ = applied.send(self.apply(digest, now));
            }
            Change::ShadowAll { on, at } => self.fleet.throw_switch(on, at),
        }
    }

    fn tick(&mut self, now: Moment) {
        self.fleet.tick(now);
    }

    fn speak(&mut self, _now: Moment) {
        tell_shadow(&mut self.told_shadow, self.fleet.switch().shadow_all);
    }

    fn leave(&mut self, _now: Moment) {}

    fn doubts(&self) -> Doubts {
        self.doubts
    }

    fn doubts_mut(&mut self) -> &mut Doubts {
        &mut self.doubts
    }
}

/// An aggregator: a zone, and its links to the controllers.
pub(crate) struct ZoneSeat {
    pub(crate) zone: Zone,
    /// Their addresses, in the order of the zone's links to them.
    pub(crate) controllers: Vec<String>,
    outboxes: Vec<Option<Outbox>>,
    told: PlanState,
    told_shadow: bool,
    disagreement: Disagreement,
    doubts: Doubts,
}

impl ZoneSeat {
    pub(crate) fn new(zone: Zone, controllers: Vec<String>) -> Self {
        Self {
            zone,
            outboxes: controllers.iter().map(|_| None).collect(),
            controllers,
            told: PlanState::None,
            told_shadow: false,
            disagreement: Disagreement::default(),
            doubts: Doubts::default(),
        }
    }

    /// Logs it once when controllers begin to differ, and once when they agree again.
    fn tell_disagreement(&mut self, now: Moment) {
        let disagreement = self.zone.disagreement(now);
        if disagreement.views && !self.disagreement.views {
            tracing::warn!(
                "controllers disagree: one hears more of the fleet than another; the widest view is obeyed"
            );
        }
        if disagreement.limits && !self.disagreement.limits {
            tracing::warn!(
                "controllers disagree: they go by different limits; the one that is obeyed counts"
            );
        }
        if disagreement == Disagreement::default() && disagreement != self.disagreement {
            tracing::info!("controllers agree again");
        }
        self.disagreement = disagreement;
    }

    fn tell_state(&mut self, now: Moment) {
        let state = self.zone.plan_state(now);
        if state != self.told {
            self.told = state;
            headworks_agent::log_plan_state(state, self.zone.obeyed_plan().map(|plan| plan.age(now)));
        }
        tell_shadow(&mut self.told_shadow, self.zone.switch().shadow_all);
    }
}

impl Seat for ZoneSeat {
    type Node = Zone;
    type Event = Event;

    fn node(&self) -> &Zone {
        &self.zone
    }

    fn node_mut(&mut self) -> &mut Zone {
        &mut self.zone
    }

    fn take(&mut self, event: Event, now: Moment) {
        match event {
            Event::Greet { link, outbox } => outbox.hello(&self.zone.hello(link)),
            Event::Attached { link, outbox, .. } => {
                if let Some(left) = self.outboxes[link].take() {
                    left.report(&self.zone.full_report(link, now));
                    left.goodbye();
                }
                self.zone.parent_attached(link);
                self.outboxes[link] = Some(outbox);
            }
            Event::Plan { link, plan, refused } => {
                self.doubts.refused += u64::from(refused);
                self.zone.plan(link, plan, now);
            }
            Event::Detached { link } => {
                self.zone.parent_detached(link);
                self.outboxes[link] = None;
            }
        }
    }

    fn tick(&mut self, now: Moment) {
        self.zone.tick(now);
        self.tell_state(now);
        self.tell_disagreement(now);
    }

    fn speak(&mut self, now: Moment) {
        for (link, outbox) in self.outboxes.iter().enumerate() {
            if let Some(outbox) = outbox.as_ref().filter(|outbox| outbox.has_room())
                && let Some(report) = self.zone.report_for(link, now)
            {
                outbox.report(&report);
            }
        }
        self.tell_state(now);
    }

    fn leave(&mut self, now: Moment) {
        for (link, outbox) in self.outboxes.iter_mut().enumerate() {
            if let Some(outbox) = outbox.take() {
                outbox.report(&self.zone.full_report(link, now));
                outbox.goodbye();
            }
        }
    }

    fn doubts(&self) -> Doubts {
        self.doubts
    }

    fn doubts_mut(&mut self) -> &mut Doubts {
        &mut self.doubts
    }
}

/// Logs each change of the switch once.
fn tell_shadow(told: &mut bool, shadow_all: bool) {
    if std::mem::replace(told, shadow_all) != shadow_all {
        headworks_agent::log_shadow_all(shadow_all);
    }
}
