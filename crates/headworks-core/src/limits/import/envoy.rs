//! Files of envoyproxy/ratelimit: a tree of descriptors for each domain.

mod read;

use std::collections::{BTreeMap, HashSet};

use super::super::fault::{FaultLog, quoted};
use super::super::{Algorithm, Fault, Limit, LimitSet, MAX_OVERRIDES, Mode};
use super::{DOMAIN, Holding, Imported, Names, Refused, document, off};
use crate::pattern::Pattern;
use read::{Descriptor, Read, domain};

/// Limits from files of envoyproxy/ratelimit, one for each domain, or several for one where `merge` says that they may be.
pub fn envoy_ratelimit(files: &[&[u8]], merge: bool, holding: Holding) -> Result<Imported, Refused> {
    let mut domains: BTreeMap<String, Vec<Descriptor>> = BTreeMap::new();
    let mut notes = Vec::new();
    for (file, bytes) in files.iter().enumerate() {
        let read = document(bytes, |tree, log| domain(tree, file, log)).map_err(|faults| (file, faults))?;
        let Some(Read { domain, descriptors, notes: told }) = read else { continue };
        notes.extend(told.into_iter().map(|note| (file, note)));
        let known = domains.entry(domain.clone()).or_default();
        check_against(known, &descriptors, &domain, merge).map_err(|faults| (file, faults))?;
        known.extend(descriptors);
    }
    let mut tree = Tree { holding, names: Names::default(), limits: Vec::new(), notes };
    for (domain, descriptors) in &domains {
        tree.walk(&mut Path { domain, levels: Vec::new() }, descriptors);
    }
    let Tree { limits, mut notes, .. } = tree;
    notes.sort_by(|(a, x), (b, y)| (a, x.line, x.column).cmp(&(b, y.line, y.column)));
    Ok(Imported { limits: LimitSet::new(limits), notes })
}

/// What a further file of a domain may not say.
fn check_against(
    known: &[Descriptor],
    more: &[Descriptor],
    domain: &str,
    merge: bool,
) -> Result<(), super::Faults> {
    let mut log = FaultLog::default();
    let names: HashSet<String> = known.iter().map(Descriptor::composite).collect();
    for descriptor in more {
        let composite = descriptor.composite();
        if !known.is_empty() && !merge {
            let message = format!(
                "domain {} is in an earlier file too: say that files of one domain are to be merged, or rename one",
                quoted(domain)
            );
            descriptor.fault(&mut log, message);
            break;
        }
        if names.contains(&composite) {
            descriptor
                .fault(&mut log, format!("{} is in an earlier file of this domain too", quoted(&composite)));
        }
    }
    log.vouch_for(())
}

/// The limits that come of trees.
///
/// A request's entries walk down a tree. At each level a child with the very value goes before one whose value holds a star (the
/// earlier in the file first), and that before one without a value; there is no way back up, and the walk must end where
/// the request does. So each descriptor with a rate becomes a limit that wants exactly these keys in this order, and
/// takes out the values that a sibling would have taken before it.
struct Tree {
    holding: Holding,
    names: Names,
    limits: Vec<Limit>,
    notes: Vec<(usize, Fault)>,
}

impl Tree {
    fn walk<'a>(&mut self, path: &mut Path<'a>, descriptors: &'a [Descriptor]) {
        for (place, descriptor) in descriptors.iter().enumerate() {
            path.levels.push((descriptor, goes_before(descriptors, place)));
            self.take(path, descriptor);
            self.walk(path, &descriptor.children);
            path.levels.pop();
        }
    }

    fn take(&mut self, path: &Path<'_>, descriptor: &Descriptor) {
        let Some(spec) = &descriptor.spec else { return };
        if let Some(why) = path.cannot_be_kept() {
            self.notes.push((descriptor.file, descriptor.note(format!("not carried over: {why}"))));
            return;
        }
        let name = self.names.unique(&spec.name.clone().unwrap_or_else(|| path.name()));
        let mut limit = self.holding.limit(name, spec.rate, Algorithm::FixedWindow);
        limit.exactly = true;
        limit.matches = path.matches();
        limit.per = path.per();
        limit.mode = if descriptor.shadow { Mode::Shadow } else { Mode::Enforce };
        limit.overrides = path.taken_before().map(|(key, value)| off(key, value)).collect();
        self.limits.push(limit);
    }
}

/// Where a descriptor stands: the domain, and each level with the values that other descriptors take before it.
struct Path<'a> {
    domain: &'a str,
    levels: Vec<(&'a Descriptor, Vec<&'a str>)>,
}

impl Path<'_> {
    /// Why no limit can mean this.
    fn cannot_be_kept(&self) -> Option<String> {
        let mut keys = HashSet::from([DOMAIN]);
        let twice = self.levels.iter().find(|(level, _)| !keys.insert(&level.key));
        if let Some((level, _)) = twice {
            return Some(format!(
                "{} stands in its path twice, and a request has one value for a key",
                quoted(&level.key)
            ));
        }
        let shared = self.levels.iter().find(|(level, before)| level.shared && !before.is_empty());
        if let Some((level, before)) = shared {
            let (value, first) = (level.value.as_deref().unwrap_or_default(), before[0]);
            return Some(format!(
                "all values of {} share one counter, from which {} cannot be taken out",
                quoted(value),
                quoted(first)
            ));
        }
        let taken = self.taken_before().count();
        (taken > MAX_OVERRIDES)
            .then(|| format!("{taken} values go before it, and a limit has {MAX_OVERRIDES} overrides"))
    }

    fn name(&self) -> String {
        let level = |(level, _): &(&Descriptor, _)| match &level.value {
            Some(value) => format!("/{}:{value}", level.key),
            None => format!("/{}", level.key),
        };
        self.levels.iter().map(level).fold(self.domain.to_owned(), |name, level| name + &level)
    }

    /// The domain, then every level: its order is that of the request.
    fn matches(&self) -> Vec<(String, Pattern)> {
        let level = |(level, _): &(&Descriptor, _)| {
            (level.key.clone(), Pattern::new(level.value.as_deref().unwrap_or("*")))
        };
        let domain = (DOMAIN.to_owned(), Pattern::new(self.domain));
        [domain].into_iter().chain(self.levels.iter().map(level)).collect()
    }

    /// The keys whose values have counters of their own.
    fn per(&self) -> Vec<String> {
        let split = |level: &Descriptor| {
            !level.shared && level.value.as_ref().is_none_or(|value| value.contains('*'))
        };
        self.levels.iter().filter(|(level, _)| split(level)).map(|(level, _)| level.key.clone()).collect()
    }

    fn taken_before(&self) -> impl Iterator<Item = (&str, &str)> {
        self.levels.iter().flat_map(|(level, before)| before.iter().map(|value| (level.key.as_str(), *value)))
    }
}

/// The values that siblings take before the one at this place.
fn goes_before(siblings: &[Descriptor], place: usize) -> Vec<&str> {
    let one = &siblings[place];
    let pattern = match &one.value {
        Some(value) if !value.contains('*') => return Vec::new(),
        value => Pattern::new(value.as_deref().unwrap_or("*")),
    };
    let is_before = |(at, other): &(usize, &Descriptor)| {
        let Some(value) = other.value.as_deref().filter(|_| *at != place && other.key == one.key) else {
            return false;
        };
        let comes_first = !value.contains('*') || one.value.is_none() || *at < place;
        comes_first && Pattern::new(value).overlaps(&pattern)
    };
    siblings.iter().enumerate().filter(is_before).filter_map(|(_, other)| other.value.as_deref()).collect()
}
