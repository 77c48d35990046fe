//! Which limits a request meets, in which bucket and by which rate; and why it does not meet the others.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::attributes::Attributes;
use crate::limits::{Limit, LimitSet, Missing, Mode};
use crate::overrides::Overrides;

/// What a set of limits has to do with a request.
#[derive(Clone, Debug)]
pub struct Explanation<'a> {
    /// The limits that it meets, in pipeline order.
    pub met: Vec<Met>,
    /// Some that it does not meet, those first that it is nearest to.
    pub missed: Vec<Missed<'a>>,
    /// How many more it does not meet.
    pub more: usize,
}

/// A limit that a request meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// The limit, as it holds for the bucket.
    pub limit: Arc<Limit>,
    /// The values of the `per` keys, which tell the bucket apart; none if the request is dropped for want of one.
    pub values: Vec<String>,
    /// The place in the file of the override that holds.
    pub by_override: Option<usize>,
    /// A key that the request lacks, for which the limit drops it.
    pub lacks: Option<String>,
}

/// A limit that a request does not meet.
#[derive(Clone, Debug)]
pub struct Missed<'a> {
    /// The limit.
    pub limit: &'a Arc<Limit>,
    /// All that would have to be otherwise; never empty.
    pub reasons: Vec<Reason<'a>>,
}

/// Why a request does not meet a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason<'a> {
    /// The limit is off.
    Off,
    /// The override at this place turns it off for the bucket of the request.
    OffByOverride(usize),
    /// An attribute has another value.
    Differs {
        /// Its key.
        key: &'a str,
        /// Its value.
        value: &'a str,
        /// What it should be.
        wanted: &'a str,
    },
    /// An attribute is not there.
    Lacks(&'a str),
    /// The request has an attribute that the limit does not name, and the limit is for those that have no others.
    Has(&'a str),
    /// The request has what the limit names, in another order, and the limit asks for this one.
    Order(Vec<&'a str>),
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Off => f.write_str("mode off"),
            Reason::OffByOverride(place) => write!(f, "off for this bucket by overrides[{place}]"),
            Reason::Differs { key, value, wanted } => write!(f, "{key} is {value:?}, not {wanted:?}"),
            Reason::Lacks(key) => write!(f, "lacks {key}"),
            Reason::Has(key) => write!(f, "has {key}, and must have exactly what the limit names"),
            Reason::Order(keys) => write!(f, "must have exactly {}, in this order", keys.join(", ")),
        }
    }
}

/// Explains a request, with at most so many of the limits that it does not meet.
pub fn explain<'a>(set: &'a LimitSet, attributes: Attributes<'a>, most: usize) -> Explanation<'a> {
    let mut explanation = Explanation { met: Vec::new(), missed: Vec::new(), more: 0 };
    for limit in set.limits() {
        match limit.explain(attributes) {
            Ok(met) => explanation.met.push(met),
            Err(reasons) => explanation.missed.push(Missed { limit, reasons }),
        }
    }
    // Stable, so those that are equally near stay in pipeline order.
    explanation.missed.sort_by_key(|missed| missed.reasons.len());
    explanation.more = explanation.missed.len().saturating_sub(most);
    explanation.missed.truncate(most);
    explanation
}

impl Limit {
    fn explain<'a>(self: &'a Arc<Self>, attributes: Attributes<'a>) -> Result<Met, Vec<Reason<'a>>> {
        let reasons = self.reasons(attributes);
        if !reasons.is_empty() {
            return Err(reasons);
        }
        let lacks = self.per.iter().find(|key| attributes.get(key).is_none());
        if let (Some(lacks), Missing::Drop) = (lacks, self.missing) {
            let lacks = Some(lacks.clone());
            return Ok(Met { limit: self.clone(), values: Vec::new(), by_override: None, lacks });
        }
        let values: Vec<String> = self.values(attributes).map(str::to_owned).collect();
        let (limit, by_override) = match self.override_for(&values) {
            Some(place) => (Arc::new(self.with(&self.overrides[place])), Some(place)),
            None => (self.clone(), None),
        };
        if let (Mode::Off, Some(place)) = (limit.mode, by_override) {
            return Err(vec![Reason::OffByOverride(place)]);
        }
        Ok(Met { limit, values, by_override, lacks: None })
    }

    /// The place of the override that holds for a bucket.
    fn override_for(&self, values: &[String]) -> Option<usize> {
        let mut places = 0..;
        let overrides = Overrides::new(None, &self.overrides, &self.per, |_| places.next());
        *overrides.of_values(values).0
    }

    fn reasons<'a>(&'a self, attributes: Attributes<'a>) -> Vec<Reason<'a>> {
        let mut reasons = Vec::new();
        if self.mode == Mode::Off {
            reasons.push(Reason::Off);
        }
        for (key, wanted) in &self.matches {
            match attributes.get(key) {
                None => reasons.push(Reason::Lacks(key)),
                Some(value) if wanted.fits(value) => {}
                Some(value) => reasons.push(Reason::Differs { key, value, wanted: wanted.as_str() }),
            }
        }
        let needs_values = self.exactly || self.missing == Missing::Skip;
        let unmatched = self.per.iter().filter(|key| self.matches.iter().all(|(matched, _)| matched != *key));
        let lacking = unmatched.filter(|key| needs_values && attributes.get(key).is_none());
        reasons.extend(lacking.map(|key| Reason::Lacks(key)));
        if self.exactly {
            self.reasons_of_exactly(attributes, &mut reasons);
        }
        reasons
    }

    fn reasons_of_exactly<'a>(&'a self, attributes: Attributes<'a>, reasons: &mut Vec<Reason<'a>>) {
        let named = |key: &str| self.keys().any(|known| known == key);
        let others = attributes.iter().filter(|(key, _)| !named(key));
        let before = reasons.len();
        reasons.extend(others.map(|(key, _)| Reason::Has(key)));
        let is_complete = self.keys().all(|key| attributes.get(key).is_some());
        if reasons.len() == before && is_complete && !self.names_all_of(attributes) {
            reasons.push(Reason::Order(self.keys().collect()));
        }
    }
}

impl Met {
    /// The override that holds, as the limits file has it: `caller: "web-*"`.
    pub fn override_text(&self, set: &LimitSet) -> Option<String> {
        let other = set.get(&self.limit.name)?.overrides.get(self.by_override?)?;
        let pairs =
            other.matches.iter().map(|(key, value)| Cow::Owned(format!("{key}: {:?}", value.as_str())));
        Some(pairs.collect::<Vec<Cow<'_, str>>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::parse;
    use crate::matching::Meeting;

    const FILE: &str = r#"limits:
  - {name: per-caller, match: {service: "checkout*"}, per: [caller], rate: 5/second, overrides: [
      {match: {caller: "web-*"}, rate: 50/second, mode: shadow}, {match: {caller: staff}, rate: 1/second, mode: off}]}
  - {name: exports, match: {service: export}, per: [tenant], rate: 5/hour, missing: drop}
  - {name: imported, match: {tenant: t1}, per: [path], exactly: true, rate: 7/second}
  - {name: asleep, rate: 1/second, mode: off}
  - {name: all, rate: 9/second, enforcement: exact}
"#;

    fn told(request: &[(&str, &str)]) -> Vec<String> {
        let set = parse(FILE).unwrap();
        let explanation = explain(&set, Attributes::new(request), 20);
        let met = explanation.met.iter().map(|met| {
            let other = met.override_text(&set).unwrap_or_default();
            format!(
                "{} {:?} {} {other}{}",
                met.limit.name,
                met.values,
                met.limit.rate,
                met.lacks.clone().unwrap_or_default()
            )
        });
        let missed = explanation.missed.iter().map(|missed| {
            let reasons: Vec<String> = missed.reasons.iter().map(ToString::to_string).collect();
            format!("not {}: {}", missed.limit.name, reasons.join("; "))
        });
        met.chain(missed).collect()
    }

    #[test]
    fn tells_bucket_rate_and_override_and_what_stands_against_the_others() {
        assert_eq!(
            told(&[("service", "checkout-eu"), ("caller", "web-1")]),
            [
                r#"per-caller ["web-1"] 50/second caller: "web-*""#,
                "all [] 9/second ",
                r#"not exports: service is "checkout-eu", not "export""#,
                "not asleep: mode off",
                "not imported: lacks tenant; lacks path; has service, and must have exactly what the limit names; \
                 has caller, and must have exactly what the limit names",
            ]
        );
    }

    #[test]
    fn tells_what_is_dropped_for_want_of_a_key_and_what_an_override_turns_off() {
        assert_eq!(told(&[("service", "export")])[0], "exports [] 5/hour tenant");
        let off = told(&[("service", "checkout"), ("caller", "staff")]);
        assert!(off.contains(&"not per-caller: off for this bucket by overrides[1]".to_owned()), "{off:?}");
    }

    #[test]
    fn tells_the_order_that_a_limit_asks_for() {
        let met = told(&[("tenant", "t1"), ("path", "/")]);
        assert_eq!(met[0], r#"imported ["/"] 7/second "#);
        let missed = told(&[("path", "/"), ("tenant", "t1")]);
        assert!(
            missed.contains(&"not imported: must have exactly tenant, path, in this order".to_owned()),
            "{missed:?}"
        );
    }

    proptest! {
        #[test]
        fn agrees_with_what_decides_requests(
            request in proptest::collection::btree_map(
                prop::sample::select(vec!["service", "caller", "tenant", "path"]),
                prop::sample::select(vec!["checkout", "export", "web-1", "t1", "staff"]), 0..5),
        ) {
            let set = parse(FILE).unwrap();
            let request: Vec<(&str, &str)> = request.into_iter().collect();
            let attributes = Attributes::new(&request);
            let explanation = explain(&set, attributes, 20);
            for limit in set.limits() {
                let met = explanation.met.iter().any(|met| met.limit.name == limit.name);
                let off = |missed: &Missed<'_>| missed.limit.name == limit.name
                    && matches!(missed.reasons[..], [Reason::OffByOverride(_)]);
                let meets = limit.meeting(attributes) != Meeting::Unconcerned;
                prop_assert_eq!(met || explanation.missed.iter().any(off), meets, "{}", limit.name);
            }
        }
    }
}
