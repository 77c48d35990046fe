//! All records of a limiter: how they are found, made, and used again, and what each has counted.
//!
//! Requests find records without a lock; only the first request of a bucket takes one, to enter it. The uplink does the
//! rest: it forgets buckets, and says which are so hot that threads count for themselves.

mod counting;
mod handle;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use headworks_core::bucket::{BucketKey, Values};
use headworks_core::units::{Headroom, Moment};

use super::cells::{Cell, Stripe};
use super::key::Hashing;
use super::local::Hands;
use super::record::Record;
use super::slab::Slab;
use super::table::Table;

pub(crate) use handle::{Handle, Reader};

/// No thread is in the middle of a decision for so long: after this a record that nobody finds any more is used for another
/// bucket.
pub(crate) const LINGERS: Duration = Duration::from_secs(10);
/// The same for cells, which are brought in before their record is used again.
const COOLS: Duration = Duration::from_secs(5);

/// The records of a limiter.
#[derive(Debug)]
pub(crate) struct Ledger {
    slab: Slab,
    hashing: Hashing,
    writer: Mutex<Writer>,
    /// The latest table.
    table: ArcSwap<Table>,
    owners: Mutex<Owners>,
    stripes: RwLock<Stripes>,
    /// Who counts alone: threads, and prepared requests.
    pub(super) threads: Arc<AtomicI64>,
    /// Rises when what prepared requests have worked out no longer holds: with other limits, and when a record that one holds on to
    /// is nobody's any more, or its values are not tracked.
    epoch: AtomicU64,
    heat: Mutex<Heat>,
}

#[derive(Debug, Default)]
struct Writer {
    /// Entries of the table, those that are gone included, and without them.
    entered: usize,
    live: usize,
    next: u32,
    free: Vec<u32>,
    /// Records that nobody finds any more, since when.
    lingering: VecDeque<(Moment, u32)>,
    /// Records that came to be, for the uplink to take up.
    opened: Vec<u32>,
}

/// Whose buckets the records are.
#[derive(Debug, Default)]
struct Owners {
    next: u32,
    /// The limits, by the numbers of their buckets.
    all: HashMap<u32, Arc<str>>,
}

#[derive(Debug, Default)]
struct Stripes {
    all: Vec<Arc<Stripe>>,
    /// Those of threads that are gone.
    free: Vec<Arc<Stripe>>,
    /// Cells of prepared requests, by their records.
    prepared: HashMap<u32, Vec<Arc<Cell>>>,
}

/// Which cells are whose.
#[derive(Debug, Default)]
struct Heat {
    next: u32,
    free: Vec<u32>,
    cooling: VecDeque<(Moment, u32)>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            slab: Slab::default(),
            hashing: Hashing::default(),
            writer: Mutex::default(),
            table: ArcSwap::from_pointee(Table::with_room_for(32)),
            owners: Mutex::default(),
            stripes: RwLock::default(),
            threads: Arc::default(),
            epoch: AtomicU64::default(),
            heat: Mutex::default(),
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// A number for the buckets of a limit.
    pub(super) fn register(&self, limit: &Arc<str>) -> u32 {
        let mut owners = held(&self.owners);
        owners.next += 1;
        let number = owners.next;
        owners.all.insert(number, limit.clone());
        number
    }

    /// The record of this number.
    #[inline(always)]
    pub(super) fn record(&self, number: u32) -> Option<&Record> {
        self.slab.get(number)
    }

    /// The record of these values, if there is one.
    #[inline(always)]
    pub(super) fn find<'v>(
        &self,
        owner: u32,
        values: &(impl Iterator<Item = &'v str> + Clone),
        hands: &mut Hands,
    ) -> Option<(u32, &Record)> {
        let hash = self.hashing.of(owner, values.clone());
        self.look_up(hash, hands, |record| record.is(owner, values.clone()))
    }

    #[inline(always)]
    fn look_up(
        &self,
        hash: u32,
        hands: &mut Hands,
        is_it: impl Fn(&Record) -> bool,
    ) -> Option<(u32, &Record)> {
        loop {
            let found = hands.table.find(hash, |number| {
                let record = self.slab.get(number)?;
                is_it(record).then_some((number, record))
            });
            if found.is_some() {
                return found;
            }
            if !hands.table.is_superseded() {
                return None;
            }
            hands.table = self.table.load_full();
        }
    }

    /// The record of these values, made if there is none; whether it was. `None` if there is no room.
    pub(super) fn enter(&self, owner: u32, values: &[&str], headroom: Headroom) -> Option<(u32, bool)> {
        let hash = self.hashing.of(owner, values.iter().copied());
        let is_it = |record: &Record| record.is(owner, values.iter().copied());
        let mut writer = held(&self.writer);
        let found =
            self.table.load().find(hash, |number| self.slab.get(number).is_some_and(is_it).then_some(number));
        if let Some(number) = found {
            return Some((number, false));
        }
        let number = writer.take_number();
        let Some(record) = self.slab.make(number) else {
            writer.free.push(number);
            return None;
        };
        record.begin(owner, Some(values), headroom);
        self.enter_in(&mut writer, hash, number);
        writer.opened.push(number);
        Some((number, true))
    }

    /// The record that is not looked up by values, made if there is none; whoever comes second finds the one of the first.
    pub(super) fn open_once(
        &self,
        slot: &OnceLock<u32>,
        owner: u32,
        values: Option<&[&str]>,
        headroom: Headroom,
    ) -> Option<u32> {
        let mut writer = held(&self.writer);
        if let Some(number) = slot.get() {
            return Some(*number);
        }
        let number = writer.take_number();
        let Some(record) = self.slab.make(number) else {
            writer.free.push(number);
            return None;
        };
        record.begin(owner, values, headroom);
        writer.opened.push(number);
        Some(*slot.get_or_init(|| number))
    }

    fn enter_in(&self, writer: &mut Writer, hash: u32, number: u32) {
        let mut table = self.table.load_full();
        if writer.entered >= table.most() {
            let renewed = Arc::new(table.renewed(writer.live));
            self.table.store(renewed.clone());
            table.supersede();
            (table, writer.entered) = (renewed, writer.live);
        }
        table.insert(hash, number);
        writer.entered += 1;
        writer.live += 1;
    }

    /// Nobody finds this record any more; it is used again after a while. Whether it was there.
    pub(super) fn remove(&self, number: u32, now: Moment) -> bool {
        let was_pinned = self.remove_from(&mut held(&self.writer), number, now);
        // Not while the writer is held: who brings cells in holds the heat, and waits for it.
        self.cool(number, now);
        if was_pinned == Some(true) {
            self.recall(number);
        }
        was_pinned.is_some()
    }

    /// Whether a prepared request held on to it; `None` if it was not there.
    fn remove_from(&self, writer: &mut Writer, number: u32, now: Moment) -> Option<bool> {
        let record = self.slab.get(number).filter(|record| record.owner() != 0)?;
        if self.table.load().remove(self.hash_of(record), number) {
            writer.live -= 1;
        }
        let was_pinned = record.end();
        writer.lingering.push_back((now, number));
        Some(was_pinned)
    }

    fn hash_of(&self, record: &Record) -> u32 {
        let values = record.values().unwrap_or_default();
        self.hashing.of(record.owner(), values.iter().map(String::as_str))
    }

    /// All records of these buckets are nobody's from now on: one pass, however many they are.
    pub(super) fn retire(&self, owners: &HashSet<u32>, now: Moment) {
        if owners.is_empty() {
            return;
        }
        held(&self.owners).all.retain(|owner, _| !owners.contains(owner));
        let is_theirs =
            |number: &u32| self.slab.get(*number).is_some_and(|record| owners.contains(&record.owner()));
        let gone: Vec<u32> = self.numbers().filter(is_theirs).collect();
        for number in gone {
            self.remove(number, now);
        }
    }

    /// The numbers of all records in use; some may come and go meanwhile.
    fn numbers(&self) -> std::ops::Range<u32> {
        0..held(&self.writer).next
    }

    /// Looks at every record in use.
    pub(super) fn for_each(&self, mut look: impl FnMut(u32, &Record)) {
        for number in self.numbers() {
            if let Some(record) = self.slab.get(number).filter(|record| record.owner() != 0) {
                look(number, record);
            }
        }
    }

    /// The records that came to be since the last call. Some may be of limits that have gone meanwhile: a request that was
    /// decided by older rules made them, and they go too.
    pub(super) fn take_opened(self: &Arc<Self>, now: Moment) -> Vec<Handle> {
        let opened = std::mem::take(&mut held(&self.writer).opened);
        let mut handles = Vec::new();
        for number in opened {
            let Some(record) = self.slab.get(number) else { continue };
            let (life, owner) = (record.life(), record.owner());
            if held(&self.owners).all.contains_key(&owner) {
                handles.push(Handle { ledger: self.clone(), number, life });
            } else {
                self.remove(number, now);
            }
        }
        handles
    }

    /// Time has passed: what lingered and what cooled is used again.
    pub(super) fn tend(&self, now: Moment) {
        self.bring_in(now);
        let mut writer = held(&self.writer);
        while let Some((since, number)) = writer.lingering.front().copied() {
            if now.since(since) < LINGERS {
                break;
            }
            writer.lingering.pop_front();
            writer.free.push(number);
        }
    }

    /// What is known of a bucket, by its record.
    fn key(&self, record: &Record) -> Option<BucketKey> {
        let owners = held(&self.owners);
        let limit = owners.all.get(&record.owner())?.clone();
        let values = record.values().map_or(Values::Rest, Values::Of);
        Some(BucketKey { limit, scope: Vec::new(), values })
    }
}

impl Writer {
    fn take_number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}
