//! The keys of buckets: `{prefix}:limit:algorithm:value:value`.
//!
//! The prefix in braces is what a cluster chooses the node by. The algorithm is in it since each keeps something else, so a
//! limit that changes its own begins anew. In values `:` and `%` are escaped, so that `a:b`+`c` is not `a`+`b:c`.

use headworks_core::limits::{Algorithm, Limit};

/// The key that is written to see whether the store works.
pub(super) fn probe(prefix: &str) -> Vec<u8> {
    format!("{{{prefix}}}:probe").into_bytes()
}

/// The key of a bucket.
pub(super) fn of_bucket(prefix: &str, limit: &Limit, values: &[&str]) -> Vec<u8> {
    let long =
        prefix.len() + limit.name.len() + values.iter().map(|value| value.len() + 1).sum::<usize>() + 8;
    let mut name = Vec::with_capacity(long);
    name.push(b'{');
    name.extend(prefix.as_bytes());
    name.extend(b"}:");
    name.extend(limit.name.as_bytes());
    name.extend(match limit.algorithm() {
        Algorithm::TokenBucket => b":t",
        Algorithm::SlidingWindow => b":s",
        Algorithm::FixedWindow => b":f",
    });
    for value in values {
        name.push(b':');
        for byte in value.bytes() {
            match byte {
                b':' => name.extend(b"%3A"),
                b'%' => name.extend(b"%25"),
                byte => name.push(byte),
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use headworks_core::limits::parse;

    use super::*;

    #[test]
    fn buckets_have_names_that_people_can_read_and_nobody_can_forge() {
        let limits =
            parse("limits: [{name: per-key, per: [a, b], rate: 1/day, enforcement: exact}]").unwrap();
        let name = |values: &[&str]| String::from_utf8(of_bucket("p", &limits.limits()[0], values)).unwrap();
        assert_eq!(name(&["x", "y"]), "{p}:per-key:t:x:y");
        assert_eq!(name(&["x:y", "é%"]), "{p}:per-key:t:x%3Ay:é%25");
        assert_ne!(name(&["x", ""]), name(&["", "x"]));
        assert_ne!(name(&["a%3Ab", ""]), name(&["a:b", ""]));
    }
}
