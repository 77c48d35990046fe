//! Reports: one struct an entry in core, columns on the wire.

use std::time::Duration;

use headworks_core::bucket::{Counts, MOST_RATE};
use headworks_core::message::{BucketNumber, BucketRef, Forgotten, News, Report, ReportEntry};
use headworks_core::units::Headroom;

use crate::{MAX_BUCKETS_PER_REPORT, WireError, bucket, switch, wire};

/// News of a shorter stretch is no news: nobody looks that often.
const SHORTEST_NEWS: Duration = Duration::from_millis(10);

pub(crate) fn encode(report: &Report) -> wire::Report {
    let mut wire = wire::Report {
        sequence: report.sequence,
        elapsed_micros: micros(report.elapsed),
        full: report.full,
        agents: report.agents,
        switch: report.switch.and_then(switch::encode),
        forgotten: report.forgotten.iter().map(|gone| gone.bucket.0).collect(),
        forgotten_lives: report.forgotten.iter().map(|gone| gone.life).collect(),
        ..wire::Report::default()
    };
    let (mut named, mut numbered) = (Vec::new(), Vec::new());
    for entry in &report.entries {
        match &entry.bucket {
            BucketRef::Named(key) => {
                wire.named.push(bucket::encode(key));
                named.push(entry);
            }
            BucketRef::Number(number) => {
                wire.numbers.push(number.0);
                numbered.push(entry);
            }
        }
    }
    wire.named_counts = columns(&named);
    wire.numbered_counts = columns(&numbered);
    wire
}

/// Whole microseconds; past 584 000 years they stand still.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn columns(entries: &[&ReportEntry]) -> Option<wire::Entries> {
    if entries.is_empty() {
        return None;
    }
    let counts = |of: fn(&Counts) -> u64| -> Vec<u64> {
        let column: Vec<u64> = entries.iter().map(|entry| of(&entry.counts)).collect();
        if column.iter().all(|count| *count == 0) { Vec::new() } else { column }
    };
    let demand = entries.iter().any(|entry| entry.demand.is_some());
    let in_force = entries.iter().any(|entry| entry.in_force.is_some());
    let news = entries.iter().any(|entry| entry.news.is_some());
    let tokens = entries.iter().any(|entry| entry.tokens.is_some());
    let lives = entries.iter().any(|entry| entry.life > 0);
    Some(wire::Entries {
        offered: counts(|counts| counts.offered),
        dropped: counts(|counts| counts.dropped),
        would_drop: counts(|counts| counts.would_drop),
        demand: column_if(demand, entries, |entry| entry.demand.unwrap_or(f64::NAN)),
        in_force: column_if(in_force, entries, |entry| {
            entry.in_force.map_or(f32::NAN, |headroom| narrow(headroom.value()))
        }),
        refused_later: counts(|counts| counts.refused_later),
        news_units: column_if(news, entries, |entry| entry.news.map_or(0, |news| news.units)),
        news_micros: column_if(news, entries, |entry| entry.news.map_or(0, |news| micros(news.window))),
        news_solid: column_if(news, entries, |entry| entry.news.is_some_and(|news| news.solid)),
        tokens: column_if(tokens, entries, |entry| entry.tokens.unwrap_or(f64::NAN)),
        lives: column_if(lives, entries, |entry| entry.life),
    })
}

fn column_if<T>(wanted: bool, entries: &[&ReportEntry], of: impl Fn(&ReportEntry) -> T) -> Vec<T> {
    if wanted { entries.iter().map(|entry| of(entry)).collect() } else { Vec::new() }
}

/// Headrooms travel as 32-bit floats: their precision is relative, so a headroom of a millionth keeps its digits.
#[allow(clippy::cast_possible_truncation, reason = "out of range becomes infinity, which is what it means")]
pub(crate) fn narrow(headroom: f64) -> f32 {
    headroom as f32
}

/// The report, and how many of its entries made no sense or were past the bound, and are left out.
pub(crate) fn decode(report: wire::Report) -> Result<(Report, u32), WireError> {
    let forgotten = forgotten(report.forgotten, report.forgotten_lives)?;
    let named = columns_of("named", report.named.len(), report.named_counts)?;
    let numbered = columns_of("numbered", report.numbers.len(), report.numbered_counts)?;
    let buckets = report.named.len() + report.numbers.len();
    let keys = report.named.into_iter().map(|key| bucket::decode(key).map(BucketRef::Named));
    let numbers = report.numbers.into_iter().map(|number| BucketRef::Number(BucketNumber(number)));
    // Newcomers give way: a bucket that the parent holds already would count as idle if a full report lost it.
    let room_for_named = MAX_BUCKETS_PER_REPORT.saturating_sub(numbers.len());
    let read = (keys.enumerate().map(|(index, key)| row(key?, &named, index)))
        .take(room_for_named)
        .chain(numbers.enumerate().map(|(index, number)| row(number, &numbered, index)))
        .take(MAX_BUCKETS_PER_REPORT);
    // Entries are large: nearly all of them are sound, and none should be moved while they become more.
    let mut entries: Vec<ReportEntry> = Vec::with_capacity(buckets.min(MAX_BUCKETS_PER_REPORT));
    entries.extend(read.flatten());
    let refused = u32::try_from(buckets - entries.len()).unwrap_or(u32::MAX);
    let report = Report {
        sequence: report.sequence,
        elapsed: Duration::from_micros(report.elapsed_micros),
        full: report.full,
        agents: report.agents,
        entries,
        forgotten,
        switch: report.switch.map(|told| switch::decode(Some(told))),
    };
    Ok((report, refused))
}

fn forgotten(numbers: Vec<u32>, lives: Vec<u32>) -> Result<Vec<Forgotten>, WireError> {
    if lives.len() != numbers.len() {
        let (length, expected) = (lives.len(), numbers.len());
        return Err(WireError::UnequalColumns { column: "forgotten", length, expected });
    }
    let gone = |(number, life)| Forgotten { bucket: BucketNumber(number), life };
    Ok(numbers.into_iter().zip(lives).map(gone).take(MAX_BUCKETS_PER_REPORT).collect())
}

/// Columns that fit the `expected` number of buckets; an empty one fits any.
fn columns_of(
    section: &'static str,
    expected: usize,
    entries: Option<wire::Entries>,
) -> Result<wire::Entries, WireError> {
    let entries = entries.unwrap_or_default();
    let lengths = [
        entries.offered.len(),
        entries.dropped.len(),
        entries.would_drop.len(),
        entries.demand.len(),
        entries.in_force.len(),
        entries.refused_later.len(),
        entries.news_units.len(),
        entries.news_micros.len(),
        entries.news_solid.len(),
        entries.tokens.len(),
        entries.lives.len(),
    ];
    if let Some(length) = lengths.into_iter().find(|length| *length != 0 && *length != expected) {
        return Err(WireError::UnequalColumns { column: section, length, expected });
    }
    Ok(entries)
}

#[allow(clippy::cast_precision_loss, reason = "compared with a bound that is far below")]
fn is_sound(news: News) -> bool {
    news.window >= SHORTEST_NEWS && news.units as f64 / news.window.as_secs_f64() <= MOST_RATE
}

/// The entry of a bucket; `None` if it makes no sense.
fn row(bucket: BucketRef, entries: &wire::Entries, index: usize) -> Option<ReportEntry> {
    let count = |column: &[u64]| column.get(index).copied().unwrap_or(0);
    let counts = Counts {
        offered: count(&entries.offered),
        dropped: count(&entries.dropped),
        would_drop: count(&entries.would_drop),
        refused_later: count(&entries.refused_later),
    };
    let news = Some(News {
        units: count(&entries.news_units),
        window: Duration::from_micros(count(&entries.news_micros)),
        solid: entries.news_solid.get(index).copied().unwrap_or(false),
    })
    .filter(|news| !news.window.is_zero());
    let tokens = entries.tokens.get(index).copied().filter(|tokens| !tokens.is_nan());
    let demand = entries.demand.get(index).copied().filter(|demand| !demand.is_nan());
    let in_force = entries.in_force.get(index).copied().filter(|headroom| !headroom.is_nan());
    let sound = counts.are_sound()
        && news.is_none_or(|news| is_sound(news) && news.units <= counts.offered)
        && tokens.is_none_or(f64::is_finite)
        && demand.is_none_or(|demand| (0.0..=MOST_RATE).contains(&demand))
        && in_force.is_none_or(|headroom| headroom >= 0.0);
    sound.then(|| ReportEntry {
        bucket,
        counts,
        demand,
        news,
        in_force: in_force.and_then(|headroom| Headroom::new(f64::from(headroom))),
        tokens,
        life: entries.lives.get(index).copied().unwrap_or_default(),
    })
}
