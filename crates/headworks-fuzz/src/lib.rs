//! Fuzzing on stable Rust, as tests: valid inputs, mutated by a seeded random generator, for as long as one likes.
//!
//! No coverage guides it; instead a check says what kind of outcome an input had, and the first input of each kind joins
//! the corpus. `HEADWORKS_FUZZ_SECONDS` (3) and `HEADWORKS_FUZZ_SEED` (1) choose how long and from where;
//! `HEADWORKS_FUZZ_INPUT`, in hexadecimal digits, runs one input again.

mod mutate;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Inputs that the corpus may grow to.
const LARGEST_CORPUS: usize = 4096;
/// No input may take longer: one that does would stop a node that reads it.
const SLOWEST: Duration = Duration::from_secs(2);

/// What was run.
#[derive(Debug)]
pub struct Ran {
    /// Inputs checked.
    pub inputs: u64,
    /// Kinds of outcome that were seen.
    pub kinds: usize,
}

/// Checks mutations of the inputs of `corpus`, and those themselves first. `check` panics when an input shows a fault, and
/// else says what kind of outcome it had. `words` are put into inputs now and then.
///
/// # Panics
/// When `check` panics or takes too long, after telling the seed and the input.
pub fn run<K: std::hash::Hash + Eq>(
    name: &str,
    corpus: Vec<Vec<u8>>,
    words: &[&[u8]],
    mut check: impl FnMut(&[u8]) -> K,
) -> Ran {
    let seed = setting("HEADWORKS_FUZZ_SEED").unwrap_or(1);
    if let Ok(input) = std::env::var("HEADWORKS_FUZZ_INPUT") {
        check(&unhex(&input));
        return Ran { inputs: 1, kinds: 1 };
    }
    let end = Instant::now() + Duration::from_secs(setting("HEADWORKS_FUZZ_SECONDS").unwrap_or(3));
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut corpus, mut kinds, mut inputs) = (corpus, HashSet::new(), 0);
    for input in &corpus {
        kinds.insert(watched(name, seed, input, &mut check));
    }
    while Instant::now() < end {
        // The clock is looked at now and then only: reading it would cost as much as a small input.
        for _ in 0..64 {
            let input = mutate::mutated(&mut random, &corpus, words);
            inputs += 1;
            let new = kinds.insert(watched(name, seed, &input, &mut check));
            if new && corpus.len() < LARGEST_CORPUS {
                corpus.push(input);
            }
        }
    }
    let ran = Ran { inputs, kinds: kinds.len() };
    println!("{name}: {} inputs, {} kinds of outcome, seed {seed}", ran.inputs, ran.kinds);
    ran
}

fn watched<K>(name: &str, seed: u64, input: &[u8], check: &mut impl FnMut(&[u8]) -> K) -> K {
    let began = Instant::now();
    let replay = || format!("HEADWORKS_FUZZ_INPUT={}", hex(input));
    let outcome = catch_unwind(AssertUnwindSafe(|| check(input))).unwrap_or_else(|panic| {
        eprintln!("{name} failed with seed {seed}; run it again with {}", replay());
        resume_unwind(panic)
    });
    let took = began.elapsed();
    assert!(took < SLOWEST, "{name} took {took:?} with seed {seed}; run it again with {}", replay());
    outcome
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).filter_map(|d| u8::try_from(d).ok()).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_two_steps_away_is_found() {
        let found = catch_unwind(|| {
            run("two steps", vec![b"limit: 10/second".to_vec()], &[b"hour"], |input| {
                let deep = input.windows(4).any(|part| part == b"hour");
                assert!(!deep || !input.starts_with(b"m"), "found");
                deep
            })
        });
        assert!(found.is_err());
    }

    #[test]
    fn an_input_survives_as_hexadecimal_digits() {
        assert_eq!(unhex(&hex(&[0, 1, 0xfe, 0xff])), [0, 1, 0xfe, 0xff]);
    }
}
