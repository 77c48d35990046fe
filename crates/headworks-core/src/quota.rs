//! A proxy as a state machine: what it counted and plans in, reports and quotas out.
//!
//! A proxy that takes quotas decides by buckets of tokens that it is handed, and tells of each every few seconds how many requests
//! passed and how many did not. Towards the tree it is an agent: what it was asked is demand, and its share of the headroom
//! comes back as tokens. In this module a request is one of the proxy's, and what limits count are cost units.
//!
//! Time is that of whoever hears the proxy. What the proxy says of time is cut to whole seconds.

mod answers;
mod bucket;
mod plans;
mod reports;
mod split;
mod strategy;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::{Identity, scale_of};
use crate::attributes::Attributes;
use crate::bucket::{BucketKey, Values};
use crate::ladder::spread;
use crate::limits::{Limit, LimitSet};
use crate::link::Link;
use crate::matching::{Encounter, Index};
use crate::message::{BucketNumber, Hello, Tier};
use crate::registry::Registry;
use crate::switch::Switch;
use crate::units::Moment;

use bucket::{Bucket, Counted, Meet, Standing};
use split::{Step, split};
pub use strategy::{Strategy, Tokens};

/// Most buckets of one proxy: it reports all of them in one message.
pub const MOST_BUCKETS: usize = 4000;
/// Bytes of all their names together.
const MOST_NAMES: usize = 256 * 1024;
/// Bytes of a name of one bucket; clients of the proxy may make up values of headers.
const MOST_NAME: usize = 2048;
/// Buckets of limits that count what one proxy is asked.
const MOST_COUNTED: usize = 20_000;
/// A bucket rests for so long before it is given up.
const IDLE: Duration = Duration::from_secs(60);
/// How long a proxy goes by what it was told: three of its reports. When it hears nothing for longer, it decides by itself.
pub const LASTS: Duration = Duration::from_secs(15);
/// The attribute that says for what the proxy asks.
pub const DOMAIN: &str = "domain";

/// The name of a proxy's bucket: keys and values, in the order of the keys.
pub type BucketId = Vec<(String, String)>;

/// What a proxy counted in one of its buckets since it told of that the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Requests that passed.
    pub allowed: u64,
    /// Requests that did not.
    pub denied: u64,
    /// It tells of the bucket for the first time, to whomever.
    pub is_new: bool,
}

/// What a proxy is to do with one of its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Decide in this way, for as long as [`LASTS`].
    Assign(Strategy),
    /// Forget it. The next request for it makes it anew.
    Abandon,
}

/// Why a bucket finds no place. The proxy is told to forget it, so its requests pass as those of an unknown bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The proxy has too many.
    #[error(
        "it has more than {MOST_BUCKETS} buckets, or their names are longer than {MOST_NAMES} bytes together"
    )]
    Many,
    /// Its name is too long.
    #[error("the name of a bucket is longer than {MOST_NAME} bytes")]
    Long,
}

/// The state of one proxy.
#[derive(Debug)]
pub struct Proxy {
    identity: Identity,
    domain: String,
    hold: Duration,
    born: Moment,
    limits: Arc<LimitSet>,
    /// The same as they hold in the zone.
    here: Arc<LimitSet>,
    index: Index,
    buckets: HashMap<BucketId, Bucket>,
    /// Bytes of the names of these.
    names: usize,
    counted: Registry<Counted>,
    /// To be told that they are given up.
    abandoned: Vec<BucketId>,
    link: Link,
    switch: Switch,
    /// The proxy has told something that no report has passed on.
    has_news: bool,
}

impl Proxy {
    /// A proxy that asks for `domain`. `hold` is how long the last headrooms stay where a limit does not say.
    pub fn new(identity: Identity, domain: String, hold: Duration, now: Moment) -> Self {
        let mut link = Link::default();
        link.attach();
        let limits = Arc::<LimitSet>::default();
        Self {
            identity,
            domain,
            hold,
            born: now,
            here: limits.clone(),
            index: index(&limits),
            limits,
            buckets: HashMap::new(),
            names: 0,
            counted: Registry::with_room_for(MOST_COUNTED),
            abandoned: Vec::new(),
            link,
            switch: Switch::default(),
            has_news: false,
        }
    }

    /// What to say to its parent first.
    pub fn hello(&self) -> Hello {
        self.identity.hello(Tier::Agent, None, None, None)
    }

    /// Buckets that it has.
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The proxy tells of a bucket.
    pub fn usage(&mut self, id: BucketId, usage: Usage, now: Moment) -> Result<(), Refused> {
        let is_known = self.buckets.contains_key(&id);
        if !is_known && let Err(refused) = self.open(&id, usage, now) {
            self.give_up(id);
            return Err(refused);
        }
        self.count(&id, usage, now);
        if let Some(bucket) = self.buckets.get_mut(&id) {
            (bucket.is_owed, bucket.heard_at) = (true, now);
            // What came with the first report was counted over a time that nobody knows here.
            if is_known {
                bucket.measure(usage.allowed.saturating_add(usage.denied), now);
            }
        }
        self.has_news = true;
        Ok(())
    }

    /// The proxy is told to let go of a bucket that it may not have. Of many it tells again what there is no room for here.
    pub fn give_up(&mut self, id: BucketId) {
        if self.abandoned.len() < MOST_BUCKETS && length(&id) <= MOST_NAMES {
            self.abandoned.push(id);
        }
    }

    fn open(&mut self, id: &BucketId, usage: Usage, now: Moment) -> Result<(), Refused> {
        let length = length(id);
        if length > MOST_NAME {
            return Err(Refused::Long);
        }
        if self.buckets.len() >= MOST_BUCKETS || self.names + length > MOST_NAMES {
            return Err(Refused::Many);
        }
        let meets = self.meets(id);
        self.names += length;
        self.buckets.insert(id.clone(), Bucket::new(meets, !usage.is_new, now));
        Ok(())
    }

    /// The limits that requests of this bucket meet. What is exact is counted by those who decide each request.
    fn meets(&mut self, id: &BucketId) -> Vec<Meet> {
        let pairs = id.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let pairs: Vec<(&str, &str)> = std::iter::once((DOMAIN, self.domain.as_str())).chain(pairs).collect();
        let attributes = Attributes::new(&pairs);
        let here = self.here.clone();
        let candidates = self.index.candidates(attributes).filter_map(|place| here.limits().get(place));
        let mut met = Vec::new();
        for limit in candidates.filter(|limit| limit.is_planned()) {
            let (values, lacks_value) = match limit.encounter(attributes) {
                Encounter::Unconcerned => continue,
                Encounter::Counted(values) => {
                    (Values::Of(values.as_slice().iter().map(|value| (*value).to_owned()).collect()), false)
                }
                Encounter::DroppedForMissing => (Values::Rest, true),
            };
            met.push((limit.clone(), values, lacks_value));
        }
        let meet = |(limit, values, lacks_value): (Arc<Limit>, Values, bool)| {
            let key = BucketKey { limit: limit.name.clone(), scope: Vec::new(), values };
            Some(Meet::new(self.counted_in(&key)?, lacks_value, limit.cost))
        };
        met.into_iter().filter_map(meet).collect()
    }

    /// The number of what counts in the bucket of a limit; the one that all values share, if this one is not tracked.
    fn counted_in(&mut self, key: &BucketKey) -> Option<BucketNumber> {
        let number = self.counted.intern(key)?;
        let limit = self.here.of_bucket(key).filter(|limit| limit.is_planned()).cloned();
        let scale = scale_of(&self.limits, key, &self.identity.zone);
        if let Some(counted) = self.counted.get_mut(number) {
            (counted.limit, counted.scale) = (limit, scale);
            counted.spread = spread(self.identity.incarnation, &key.limit);
        }
        Some(number)
    }

    /// Counts what the proxy told, by limits: what passed, what each dropped, and what it would have dropped in shadow.
    fn count(&mut self, id: &BucketId, usage: Usage, now: Moment) {
        let Some(bucket) = self.buckets.get(id) else { return };
        let step = |meet| self.standing(meet, now).map_or(Step::PASSES, Standing::step);
        let steps: Vec<Step> = bucket.meets.iter().map(step).collect();
        let parts = split(usage.allowed, usage.denied, &steps);
        let Some(bucket) = self.buckets.get_mut(id) else { return };
        for (meet, part) in bucket.meets.iter_mut().zip(parts) {
            if let Some(counted) = self.counted.get_mut(meet.number) {
                let is_budget = counted.limit.as_ref().is_some_and(|limit| limit.budget().is_some());
                counted.counts += meet.take(part, is_budget);
            }
        }
    }

    /// How a limit stands for requests that meet it; nothing, while there is no plan or where it is off.
    fn standing(&self, meet: &Meet, now: Moment) -> Option<Standing<'_>> {
        let plan = self.link.plan()?;
        let counted = self.counted.get(meet.number)?;
        let standing = counted.standing((plan.age(now), plan.ttl), self.hold, self.switch.shadow_all)?;
        Some(if meet.lacks_value { standing.refusing() } else { standing })
    }
}

fn index(limits: &LimitSet) -> Index {
    Index::new(limits.limits().iter().map(|limit| &**limit))
}

fn length(id: &BucketId) -> usize {
    id.iter().map(|(key, value)| key.len() + value.len()).sum()
}
