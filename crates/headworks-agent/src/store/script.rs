//! What is said to the script and what it says: `check.lua` tells the layout.

use std::time::Duration;

use headworks_core::exact::{Numbers, Rule};
use redis::{Cmd, Value};

use crate::exact::Ask;

/// Checks and charges; see there.
pub(super) const CHECK: &str = include_str!("check.lua");

/// A bucket to be checked.
#[derive(Clone, Copy)]
pub(super) struct Bucket<'a> {
    pub(super) name: &'a [u8],
    pub(super) rule: &'a Rule,
    pub(super) ask: &'a Ask<'a>,
}

/// What is told of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) passes: bool,
    /// Cost units, with this request charged if it was.
    pub(super) left: u64,
    /// Until the same cost fits; zero for at once.
    pub(super) wait: Duration,
}

/// The command that checks these buckets.
pub(super) fn command<'a>(sha: &str, buckets: impl Iterator<Item = Bucket<'a>> + Clone) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(sha).arg(buckets.clone().count());
    buckets.clone().for_each(|bucket| {
        command.arg(bucket.name);
    });
    buckets.for_each(|bucket| {
        let Bucket { rule, ask, .. } = bucket;
        command.arg(&argument(rule, ask.enforced, ask.cost, ask.charge)[..]);
    });
    command
}

/// The command that writes the probe, as if it were a bucket.
pub(super) fn probe(sha: &str, name: &[u8]) -> Cmd {
    let numbers = Numbers::FixedWindow { amount: 1 << 52, length: 1_000_000 };
    let mut command = redis::cmd("EVALSHA");
    command.arg(sha).arg(1).arg(name).arg(&packed(numbers, true, 1, 1)[..]);
    command
}

fn argument(rule: &Rule, enforced: bool, cost: u64, charge: u64) -> [u8; ARGUMENT] {
    // A rule that counts nothing is never asked for; one that holds nothing refuses.
    let numbers = rule.numbers().unwrap_or(Numbers::FixedWindow { amount: 0, length: 1 });
    packed(numbers, enforced, cost, charge)
}

/// Two bytes, and five numbers of the kind that the script has.
const ARGUMENT: usize = 2 + 5 * size_of::<f64>();

#[allow(
    clippy::cast_precision_loss,
    reason = "the script has no other numbers; amounts above 2^53 are absurd"
)]
pub(super) fn packed(numbers: Numbers, enforced: bool, cost: u64, charge: u64) -> [u8; ARGUMENT] {
    let (algorithm, amount, time, parts) = match numbers {
        Numbers::TokenBucket { burst, back, parts } => (1, burst, back, parts),
        Numbers::SlidingWindow { amount, length } => (2, amount, length, 0),
        Numbers::FixedWindow { amount, length } => (3, amount, length, 0),
    };
    let mut packed = [0; ARGUMENT];
    let (flags, rest) = packed.split_at_mut(2);
    flags.copy_from_slice(&[algorithm, u8::from(enforced)]);
    for (bytes, number) in rest.chunks_exact_mut(size_of::<f64>()).zip([cost, charge, amount, time, parts]) {
        bytes.copy_from_slice(&(number as f64).to_le_bytes());
    }
    packed
}

/// What the script said of so many buckets; `None` if it was something else.
pub(super) fn told(reply: &Value, buckets: usize) -> Option<Vec<Told>> {
    let Value::BulkString(bytes) = reply else { return None };
    let numbers: Option<Vec<u64>> = bytes.chunks(size_of::<f64>()).map(number).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == 3 * buckets)?;
    let told =
        |told: &[u64]| Told { passes: told[0] == 1, left: told[1], wait: Duration::from_micros(told[2]) };
    Some(numbers.chunks_exact(3).map(told).collect())
}

/// A whole number, as the script has it.
fn number(bytes: &[u8]) -> Option<u64> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "neither below 0 nor a fraction"
    )]
    (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_did_not_say_is_not_believed() {
        let reply =
            |numbers: &[f64]| Value::BulkString(numbers.iter().flat_map(|n| n.to_le_bytes()).collect());
        let passes = Told { passes: true, left: 9, wait: Duration::ZERO };
        assert_eq!(told(&reply(&[1.0, 9.0, 0.0]), 1), Some(vec![passes]));
        let cut = Value::BulkString(vec![0; 23]);
        let odd = [(reply(&[1.0, 9.0]), 1), (reply(&[1.0, 9.0, 0.0]), 2), (cut, 1), (Value::Nil, 1)];
        let odd_numbers = [-9.0, 0.5, f64::NAN, f64::INFINITY].map(|left| (reply(&[1.0, left, 0.0]), 1));
        for (reply, buckets) in odd.into_iter().chain(odd_numbers) {
            assert_eq!(told(&reply, buckets), None, "{reply:?}");
        }
    }
}
