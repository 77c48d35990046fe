//! All records of a limiter: how they are found, made, and used again, and what each has counted.
//!
//! Requests find records without a lock; only the first request of a bucket takes one, to enter it. The uplink does the
//! rest: it forgets buckets, and says which are so hot that threads count for themselves.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use arc_swap::ArcSwap;
use headworks_core::agent::InForce;
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::units::{Headroom, Moment};

use super::cells::{Cell, MOST_HOT, Stripe};
use super::key::{Hashing, Key};
use super::local::Hands;
use super::record::{Name, Record};
use super::slab::{Held, Slab};
use super::table::Table;

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
    all: HashMap<u32, Owner>,
}

#[derive(Debug)]
struct Owner {
    limit: Arc<str>,
    /// Values that its buckets have.
    values: usize,
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
            heat: Mutex::default(),
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// A number for the buckets of a limit.
    pub(super) fn register(&self, limit: &Arc<str>, values: usize) -> u32 {
        let mut owners = held(&self.owners);
        owners.next += 1;
        let number = owners.next;
        owners.all.insert(number, Owner { limit: limit.clone(), values });
        number
    }

    /// The record of this number.
    #[inline(always)]
    pub(super) fn record(&self, number: u32) -> Option<&Record> {
        self.slab.get(number)
    }

    /// The record of these values, if there is one.
    #[inline(always)]
    pub(super) fn find(&self, owner: u32, key: &Key, hands: &mut Hands) -> Option<(u32, &Record)> {
        let hash = self.hashing.of_key(owner, key);
        self.look_up(hash, hands, |record| record.is(owner, key))
    }

    /// The same for values that are too long to be kept in a record.
    #[cold]
    pub(super) fn find_long(&self, owner: u32, values: &[&str], hands: &mut Hands) -> Option<(u32, &Record)> {
        let hash = self.hashing.of_values(owner, values.iter().copied());
        self.look_up(hash, hands, |record| record.is_long(owner, values))
    }

    #[inline(always)]
    fn look_up(
        &self,
        hash: u32,
        hands: &mut Hands,
        is_it: impl Fn(&Record) -> bool,
    ) -> Option<(u32, &Record)> {
        loop {
            let found = hands.table.find(hash, |number| self.slab.get(number).is_some_and(&is_it));
            if let Some(number) = found {
                return Some((number, self.slab.get(number)?));
            }
            if !hands.table.is_superseded() {
                return None;
            }
            hands.table = self.table.load_full();
        }
    }

    /// The record of these values, made if there is none; whether it was. `None` if there is no room.
    pub(super) fn enter(&self, owner: u32, name: Name<'_>, headroom: Headroom) -> Option<(u32, bool)> {
        let hash = match name {
            Name::Short(key) => self.hashing.of_key(owner, key),
            Name::Long(values) => self.hashing.of_values(owner, values.iter().copied()),
            Name::Rest => return None,
        };
        let is_it = |record: &Record| match name {
            Name::Short(key) => record.is(owner, key),
            Name::Long(values) => record.is_long(owner, values),
            Name::Rest => false,
        };
        let mut writer = held(&self.writer);
        let found = self.table.load().find(hash, |number| self.slab.get(number).is_some_and(is_it));
        if let Some(number) = found {
            return Some((number, false));
        }
        let number = writer.take_number();
        let Some(record) = self.slab.make(number) else {
            writer.free.push(number);
            return None;
        };
        record.begin(owner, name, headroom);
        self.enter_in(&mut writer, hash, number);
        writer.opened.push(number);
        Some((number, true))
    }

    /// The record that is not looked up by values, made if there is none; whoever comes second finds the one of the first.
    pub(super) fn open_once(
        &self,
        slot: &OnceLock<u32>,
        owner: u32,
        name: Name<'_>,
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
        record.begin(owner, name, headroom);
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
        let was_lent = self.slab.get(number).is_some_and(Record::is_pinned);
        let removed = self.remove_from(&mut held(&self.writer), number, now);
        // Not while the writer is held: who brings cells in holds the heat, and waits for it.
        self.cool(number, now);
        if removed && was_lent {
            self.recall(number);
        }
        removed
    }

    fn remove_from(&self, writer: &mut Writer, number: u32, now: Moment) -> bool {
        let Some(record) = self.slab.get(number).filter(|record| record.owner() != 0) else { return false };
        if self.table.load().remove(self.hash_of(record), number) {
            writer.live -= 1;
        }
        record.end();
        writer.lingering.push_back((now, number));
        true
    }

    fn hash_of(&self, record: &Record) -> u32 {
        match record.key_or_long() {
            Ok(key) => self.hashing.of_key(record.owner(), &key),
            Err(long) => self.hashing.of_values(record.owner(), long.iter().map(String::as_str)),
        }
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
        let owner = owners.all.get(&record.owner())?;
        let values = record.values(owner.values).map_or(Values::Rest, Values::Of);
        Some(BucketKey { limit: owner.limit.clone(), scope: Vec::new(), values })
    }
}

/// How threads count for themselves.
impl Ledger {
    /// The cells of a thread that begins to decide.
    pub(super) fn join(&self) -> (Arc<Stripe>, Arc<AtomicI64>, Arc<Table>) {
        let table = self.table.load_full();
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        let stripe = stripes.free.pop().unwrap_or_else(|| {
            let made = Arc::<Stripe>::default();
            stripes.all.push(made.clone());
            made
        });
        self.threads.fetch_add(1, Relaxed);
        (stripe, self.threads.clone(), table)
    }

    /// A thread is gone: another may go on in its cells.
    pub(super) fn part(&self, stripe: &Arc<Stripe>) {
        self.threads.fetch_sub(1, Relaxed);
        self.stripes.write().unwrap_or_else(PoisonError::into_inner).free.push(stripe.clone());
    }

    /// Reads what was counted; nothing is brought in meanwhile.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { ledger: self, stripes: self.stripes.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// From now on threads count for themselves in this bucket, if there are cells left.
    pub(super) fn heat(&self, number: u32) {
        let mut heat = held(&self.heat);
        let Some(record) = self.slab.get(number).filter(|record| record.cell().is_none()) else { return };
        let next = (heat.next < MOST_HOT).then_some(heat.next);
        let Some(cell) = heat.free.pop().or(next) else { return };
        heat.next = heat.next.max(cell + 1);
        record.heat(cell);
    }

    /// From now on they count together again.
    pub(super) fn cool(&self, number: u32, now: Moment) {
        if let Some(record) = self.slab.get(number).filter(|record| record.is_hot()) {
            record.cool();
            held(&self.heat).cooling.push_back((now, number));
        }
    }

    /// Brings in what is in cells where nobody counts any more.
    fn bring_in(&self, now: Moment) {
        let mut heat = held(&self.heat);
        if heat.cooling.front().is_none_or(|(since, _)| now.since(*since) < COOLS) {
            return;
        }
        let stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, number)) = heat.cooling.front().copied() {
            if now.since(since) < COOLS {
                return;
            }
            heat.cooling.pop_front();
            let Some(record) = self.slab.get(number) else { continue };
            let Some(cell) = record.cell() else { continue };
            for cell in stripes.all.iter().filter_map(|stripe| stripe.peek(cell)) {
                record.bring_in(cell.tally.counts());
                cell.clear();
            }
            record.leave_cell();
            heat.free.push(cell);
        }
    }

    /// A prepared request counts in a cell of its own, and holds on to the record: it is not forgotten.
    pub(super) fn lend(&self, number: u32) -> Option<(Held, Arc<Cell>)> {
        let held = self.slab.hold(number)?;
        let cell = Arc::<Cell>::default();
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        stripes.prepared.entry(number).or_default().push(cell.clone());
        held.record().set_pinned(true);
        self.threads.fetch_add(1, Relaxed);
        Some((held, cell))
    }

    /// The record is nobody's any more. What is still counted in cells that were lent is of no bucket.
    fn recall(&self, number: u32) {
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        let cells = stripes.prepared.remove(&number).unwrap_or_default();
        if let Some(record) = self.slab.get(number) {
            cells.iter().for_each(|cell| record.bring_in(cell.tally.counts()));
        }
    }

    /// It does so no longer. Of a record that is another bucket's by now there is nothing to give back.
    pub(super) fn give_back(&self, number: u32, cell: &Arc<Cell>) {
        self.threads.fetch_sub(1, Relaxed);
        let mut stripes = self.stripes.write().unwrap_or_else(PoisonError::into_inner);
        let Some(cells) = stripes.prepared.get_mut(&number) else { return };
        let Some(place) = cells.iter().position(|lent| Arc::ptr_eq(lent, cell)) else { return };
        cells.swap_remove(place);
        let is_last = cells.is_empty();
        if let Some(record) = self.slab.get(number) {
            record.bring_in(cell.tally.counts());
            record.set_pinned(!is_last);
        }
        if is_last {
            stripes.prepared.remove(&number);
        }
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

/// Reads what buckets have counted, each in full, wherever it was counted.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    ledger: &'a Ledger,
    stripes: RwLockReadGuard<'a, Stripes>,
}

impl Reader<'_> {
    /// What was counted in a record and its cells.
    pub(super) fn counts(&self, number: u32, record: &Record) -> Counts {
        let mut counts = record.counts();
        if record.is_pinned()
            && let Some(cells) = self.stripes.prepared.get(&number)
        {
            cells.iter().for_each(|cell| counts += cell.tally.counts());
        }
        if let Some(cell) = record.cell() {
            let cells = self.stripes.all.iter().filter_map(|stripe| stripe.peek(cell));
            cells.for_each(|cell| counts += cell.tally.counts());
        }
        counts
    }

    /// What was counted in the bucket of a handle.
    pub(crate) fn of(&self, handle: &Handle) -> Counts {
        let record = self.ledger.record(handle.number);
        record.map(|record| self.counts(handle.number, record)).unwrap_or_default()
    }
}

/// A bucket's record, as the uplink holds it.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    ledger: Arc<Ledger>,
    number: u32,
    life: u32,
}

impl Handle {
    fn record(&self) -> Option<&Record> {
        self.ledger.slab.get(self.number).filter(|record| record.life() == self.life)
    }

    /// The number of the record.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Whose bucket it is; 0 if nobody's.
    pub(crate) fn owner(&self) -> u32 {
        self.record().map_or(0, Record::owner)
    }

    /// The bucket; `None` if it is gone.
    pub(crate) fn key(&self) -> Option<BucketKey> {
        self.ledger.key(self.record()?)
    }

    /// Puts in force what decisions on it go by.
    pub(crate) fn set(&self, in_force: InForce, now: Moment) {
        self.record().iter().for_each(|record| record.set(in_force, now));
    }

    /// What was counted in it so far.
    pub(crate) fn counts(&self) -> Counts {
        self.ledger.reader().of(self)
    }

    /// Whether no request finds it any more: its limit is gone, or it was forgotten.
    pub(crate) fn is_retired(&self) -> bool {
        self.record().is_none()
    }

    /// Whether its values are not tracked.
    pub(crate) fn is_away(&self) -> bool {
        self.record().is_some_and(Record::is_away)
    }

    /// From now on its values are tracked, or not.
    pub(crate) fn set_away(&self, away: bool) {
        self.record().iter().for_each(|record| record.set_away(away));
    }

    /// Whether a request asked for it since the last call.
    pub(crate) fn was_wanted(&self) -> bool {
        self.record().is_some_and(Record::was_wanted)
    }

    /// Whether a prepared request holds on to it.
    pub(crate) fn is_pinned(&self) -> bool {
        self.record().is_some_and(Record::is_pinned)
    }

    /// Whether threads count for themselves in it.
    pub(crate) fn is_hot(&self) -> bool {
        self.record().is_some_and(Record::is_hot)
    }

    /// Lets threads count for themselves in it, or not.
    pub(crate) fn set_hot(&self, hot: bool, now: Moment) {
        if hot {
            self.ledger.heat(self.number);
        } else {
            self.ledger.cool(self.number, now);
        }
    }
}
