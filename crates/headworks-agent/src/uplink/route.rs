//! Which parent a node turns to next, and when. Knows no clock, no network and no chance: all three are arguments.

use std::net::SocketAddr;
use std::time::Duration;

use headworks_core::backoff::Backoff;
use headworks_core::units::Moment;

/// A stream that lived this long, and brought a plan, was healthy: the next attempt may come soon again. Without it a
/// parent that accepts and closes at once would be dialled as fast as it closes.
const HEALTHY: Duration = Duration::from_secs(5);
/// Least wait after a stream that was not.
const USELESS: Duration = Duration::from_secs(1);
/// Visits to better parents become rarer while they fail, up to this many times the first wait.
const RAREST: u32 = 6;

/// How long a node stays with a parent that it could leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// About how long with one that is not its first choice before it tries a better one: from half of this to one and a
    /// half times, and longer while that fails.
    pub return_after: Duration,
    /// About how long on one stream, give or take a tenth; then names are looked up again, so that parents that joined
    /// get their part of the load. Zero: for ever.
    pub max_age: Duration,
}

impl Default for Stay {
    fn default() -> Self {
        Self { return_after: Duration::from_secs(60), max_age: Duration::from_secs(3600) }
    }
}

/// One address at which a parent may be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The URL as it was given: certificates are checked against the name in it.
    pub(super) url: String,
    /// What its name resolved to.
    pub(super) address: SocketAddr,
}

impl Candidate {
    /// Whether it is dialled over TLS. Schemes are the same in capitals, so whoever asks for `HTTPS://` must not be sent plain
    /// text.
    pub(super) fn is_secure(&self) -> bool {
        self.url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
    }

    /// The URL with the address in place of the name: what logs and a later parent are told.
    pub(super) fn label(&self) -> String {
        format!("{}://{}", if self.is_secure() { "https" } else { "http" }, self.address)
    }
}

/// The stream that a node has.
#[derive(Debug)]
struct Current {
    candidate: Candidate,
    since: Moment,
    /// When to look for a better parent.
    look: Option<Moment>,
    /// When the stream is too old.
    old: Option<Moment>,
}

/// Where a node stands among its possible parents.
#[derive(Debug)]
pub(super) struct Route {
    stay: Stay,
    /// Most preferred first.
    candidates: Vec<Candidate>,
    /// Every name resolved: nobody better is missing.
    complete: bool,
    next: usize,
    backoff: Backoff,
    /// The wait before the next visit, by which its jitter is measured.
    patience: Duration,
    current: Option<Current>,
}

impl Route {
    pub(super) fn new(stay: Stay) -> Self {
        Self {
            stay,
            candidates: Vec::new(),
            complete: true,
            next: 0,
            backoff: Backoff::default(),
            patience: stay.return_after,
            current: None,
        }
    }

    /// Those that may be tried from now on, most preferred first.
    pub(super) fn know(&mut self, candidates: Vec<Candidate>, complete: bool) {
        self.next = self.next.checked_rem(candidates.len()).unwrap_or_default();
        (self.candidates, self.complete) = (candidates, complete);
    }

    /// Whether all have been tried since names were looked up.
    pub(super) fn begins_a_round(&self) -> bool {
        self.next == 0
    }

    /// The one to try now.
    pub(super) fn candidate(&self) -> Option<&Candidate> {
        self.candidates.get(self.next)
    }

    /// An attempt failed: how long to wait before the next one.
    pub(super) fn failed(&mut self, random: f64) -> Duration {
        self.next = (self.next + 1).checked_rem(self.candidates.len()).unwrap_or_default();
        self.backoff.next(random)
    }

    /// A stream is open, whether or not there was one before; `heard` tells whether a plan came over that one.
    pub(super) fn attached(&mut self, candidate: Candidate, heard: bool, now: Moment, random: [f64; 2]) {
        self.judge(heard, now);
        let old =
            (!self.stay.max_age.is_zero()).then(|| now + self.stay.max_age.mul_f64(0.9 + 0.2 * random[0]));
        self.current = Some(Current { candidate, since: now, look: None, old });
        self.plan_a_look(now, random[1]);
    }

    /// The stream ended: how long to wait before the next parent is tried. Over twice as long as after a mere failure if it
    /// was of no use: a parent that accepts and closes has work with each attempt.
    pub(super) fn lost(&mut self, heard: bool, now: Moment, random: f64) -> Duration {
        let healthy = self.judge(heard, now);
        self.next = self.rank().unwrap_or_default();
        self.current = None;
        let wait = self.failed(random);
        if healthy { wait } else { USELESS + wait * 2 }
    }

    /// When to look for a better parent, or for any, while the stream goes on.
    pub(super) fn due(&self) -> Option<Moment> {
        let current = self.current.as_ref()?;
        [current.look, current.old].into_iter().flatten().min()
    }

    /// Those to try now that a look is due: the better ones, or all if the stream is too old.
    pub(super) fn better(&self, now: Moment) -> Vec<Candidate> {
        let is_old = self.current.as_ref().and_then(|current| current.old).is_some_and(|old| old <= now);
        let end = self.rank().filter(|_| !is_old).unwrap_or(self.candidates.len());
        self.candidates[..end].to_vec()
    }

    /// The look changed nothing: the next one comes later, and later still if somebody was asked in vain.
    pub(super) fn stayed(&mut self, in_vain: bool, now: Moment, random: f64) {
        if in_vain {
            self.have_patience();
        }
        self.plan_a_look(now, random);
        let wait = self.wait(random);
        if let Some(old) = self.current.as_mut().and_then(|current| current.old.as_mut())
            && *old <= now
        {
            *old = now + wait;
        }
    }

    /// Where the present parent stands; nothing if its name does not lead to it any more.
    fn rank(&self) -> Option<usize> {
        let current = self.current.as_ref()?;
        self.candidates.iter().position(|candidate| *candidate == current.candidate)
    }

    /// Whether a stream that is left or lost was good; what follows from that for later ones.
    fn judge(&mut self, heard: bool, now: Moment) -> bool {
        let Some(current) = &self.current else { return false };
        let (healthy, first) = (heard && now.since(current.since) >= HEALTHY, self.rank() == Some(0));
        if healthy {
            self.backoff = Backoff::default();
        }
        match (first, healthy) {
            (true, true) => self.patience = self.stay.return_after,
            // The first choice was there, and was of no use.
            (true, false) => self.have_patience(),
            (false, _) => {}
        }
        healthy
    }

    fn have_patience(&mut self) {
        self.patience = (self.patience * 2).min(self.stay.return_after * RAREST);
    }

    fn wait(&self, random: f64) -> Duration {
        self.patience.mul_f64(0.5 + random)
    }

    fn plan_a_look(&mut self, now: Moment, random: f64) {
        let is_best = self.complete && self.rank() == Some(0);
        let look = (!is_best).then(|| now + self.wait(random));
        if let Some(current) = &mut self.current {
            current.look = look;
        }
    }
}

#[cfg(test)]
mod tests;
