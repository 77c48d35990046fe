//! News that rests on too little to be believed by itself.
//!
//! Only those who saw an outlier report before their time. Of a thousand hosts with two requests a second each, some have
//! twenty by chance; added up with the others' averages they would make the sum far too large. But when a tenth of all
//! tell the like within a moment, that is no chance.

use std::time::Duration;

use super::ChildId;
use super::child::Told;
use crate::message::BucketNumber;
use crate::numbers::NumberMap;
use crate::units::Moment;

/// How near in time the like has to be told: two spacings, since nobody reports more often.
const WITHIN: Duration = Duration::from_millis(100);
/// The part of those who count a bucket that has to tell it: one in so many.
const PART: u32 = 10;
/// Of so few, one is enough; of more, one alone never is.
const FEW: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Rumour {
    child: ChildId,
    told: Told,
    at: Moment,
    believed: bool,
}

/// The news of the last moments, by bucket.
#[derive(Debug, Default)]
pub(super) struct Rumours(NumberMap<BucketNumber, Vec<Rumour>>);

impl Rumours {
    /// News from a child; all news that are to be believed now, this one or earlier ones.
    pub(super) fn hear(
        &mut self,
        number: BucketNumber,
        child: ChildId,
        told: Told,
        holders: u32,
        now: Moment,
    ) -> Vec<(ChildId, Told)> {
        let rumours = self.0.entry(number).or_default();
        rumours.retain(|rumour| now.since(rumour.at) <= WITHIN && rumour.child != child);
        rumours.push(Rumour { child, told, at: now, believed: false });
        let alike = rumours.iter().filter(|rumour| rumour.told.rises == told.rises).count();
        let tellers = u32::try_from(alike).unwrap_or(u32::MAX);
        let needed = if holders <= FEW { 1 } else { holders.div_ceil(PART).max(2) };
        let all = tellers >= needed;
        let mut believed = Vec::new();
        for rumour in rumours.iter_mut().filter(|rumour| !rumour.believed) {
            if all && rumour.told.rises == told.rises || rumour.told.news.solid {
                rumour.believed = true;
                believed.push((rumour.child, rumour.told));
            }
        }
        believed
    }

    /// Forgets what is over.
    pub(super) fn forget_old(&mut self, now: Moment) {
        self.0.retain(|_, rumours| rumours.last().is_some_and(|last| now.since(last.at) <= WITHIN));
    }
}
