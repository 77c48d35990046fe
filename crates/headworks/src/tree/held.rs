//! Limits that are held back: at the present demand they would newly drop much of what passes, which somebody shall confirm.

use std::sync::Arc;

use headworks_core::fleet::Fleet;
use headworks_core::limits::{Digest, LimitSet};
use headworks_core::units::Moment;
use headworks_core::what_if::Effect;

use crate::legible;

/// Limits named in the log, of those for which a set is held back.
const NAMED: usize = 20;
/// Bytes of such a line.
const LONGEST: usize = 512;

/// When limits are held back: the part of any limit's passing traffic that they may newly drop; `None` is never.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HoldBack(pub(crate) Option<f64>);

impl Default for HoldBack {
    fn default() -> Self {
        Self(Some(0.1))
    }
}

impl HoldBack {
    /// Reads `10%`, or `off`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "off" {
            return Ok(Self(None));
        }
        let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        let percent =
            percent.ok_or_else(|| "write a part from 0% to 100%, such as 10%, or off".to_owned())?;
        Ok(Self(Some(percent / 100.0)))
    }
}

/// Limits that wait to be confirmed.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) limits: Arc<LimitSet>,
    /// What they would do to the limits for which they are held back, as it was when they came.
    pub(crate) causes: Vec<Effect>,
    pub(crate) since: Moment,
}

/// What came of a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// The limits that were held back are in force.
    Now,
    /// They are in force, and were before.
    Already,
    /// Others are held back, or none are.
    NotHeld,
}

/// The limits that a controller holds back, at most one set.
#[derive(Debug, Default)]
pub(super) struct Holding {
    pub(super) rule: HoldBack,
    pub(super) held: Option<Held>,
    /// How many sets were held back so far.
    pub(super) times: u64,
}

impl Holding {
    /// Whether these limits may come into force; held back if not. Whatever was held back before them is forgotten: the file
    /// says something else now.
    pub(super) fn judge(
        &mut self,
        fleet: &Fleet,
        limits: &Arc<LimitSet>,
        confirmed: bool,
        now: Moment,
    ) -> bool {
        let before = self.held.take();
        if before.is_some() && limits.digest() == fleet.limits().digest() {
            tracing::info!("limits are what is in force again; those held back are forgotten");
            return false;
        }
        let causes = self.causes(fleet, limits);
        if causes.is_empty() {
            return true;
        }
        if confirmed {
            tracing::info!(digest = %limits.digest(), "limits confirmed in their file");
            return true;
        }
        self.times += 1;
        tell(&causes, limits.digest());
        self.held = Some(Held { limits: limits.clone(), causes, since: now });
        false
    }

    fn causes(&self, fleet: &Fleet, limits: &LimitSet) -> Vec<Effect> {
        let HoldBack(Some(most)) = self.rule else { return Vec::new() };
        let effects = fleet.what_if(limits);
        let mut causes: Vec<Effect> = effects.into_iter().filter(|effect| effect.is_beyond(most)).collect();
        causes.sort_by(|a, b| b.newly.total_cmp(&a.newly));
        causes
    }

    /// What is held back, if it is what has this digest.
    pub(super) fn take(&mut self, digest: Digest) -> Option<Arc<LimitSet>> {
        self.held.take_if(|held| held.limits.digest() == digest).map(|held| held.limits)
    }
}

fn tell(causes: &[Effect], digest: Digest) {
    for cause in causes.iter().take(NAMED) {
        tracing::warn!("limits held back: {}", legible::cut(&cause.to_string(), LONGEST));
    }
    if let Some(more) = causes.len().checked_sub(NAMED).filter(|more| *more > 0) {
        tracing::warn!("limits held back: and {more} limits more");
    }
    tracing::warn!(
        %digest,
        "limits held back, the running ones stay: if that is meant, run `headworks limits apply`, or write \
         `confirm: {digest}` beside `limits:` in the file"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_written_in_percent() {
        assert_eq!(HoldBack::parse("10%"), Ok(HoldBack::default()));
        assert_eq!(HoldBack::parse(" 2.5 %"), Ok(HoldBack(Some(0.025))));
        assert_eq!(HoldBack::parse("off"), Ok(HoldBack(None)));
        for text in ["", "10", "101%", "-1%", "NaN%", "on", "%"] {
            assert!(HoldBack::parse(text).is_err(), "{text}");
        }
    }
}
