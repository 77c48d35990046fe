//! Every scenario that comes with the program gives the figures it expects, and the very transcript that is committed
//! beside it. `UPDATE_SNAPSHOTS=1` writes the transcripts anew, to be looked at before they are committed.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{env, fs, thread};

use headworks_sim::catalogue::SCENARIOS;
use headworks_sim::{parse, run};

fn committed(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(format!("{name}.txt"))
}

/// What is wrong with a scenario, if something is.
fn fault(name: &str, script: &str) -> Option<String> {
    let script = match parse(script) {
        Ok(script) => script,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let outcome = run(&Arc::new(script), |_| {});
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(committed(name), &outcome.transcript).unwrap();
    }
    let wanted = fs::read_to_string(committed(name)).unwrap_or_default();
    if !outcome.as_expected {
        Some(format!("{name} is not as expected:\n{}", outcome.transcript))
    } else if outcome.transcript != wanted {
        Some(format!("{name} differs from its transcript.\nwas:\n{wanted}\nis:\n{}", outcome.transcript))
    } else {
        None
    }
}

#[test]
fn every_scenario_is_as_expected_and_as_committed() {
    let next = AtomicUsize::new(0);
    let work = || -> Vec<String> {
        let places = std::iter::from_fn(|| SCENARIOS.get(next.fetch_add(1, Relaxed)));
        places.filter_map(|(name, script)| fault(name, script)).collect()
    };
    let faults: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_seed_gives_the_same_transcript_every_time_and_another_seed_another() {
    let (_, text) = SCENARIOS.iter().find(|(name, _)| *name == "held-at-150-percent").unwrap();
    let text = text.replace("310s", "40s");
    let transcript = |text: &str| run(&Arc::new(parse(text).unwrap()), |_| {}).transcript;
    assert_eq!(transcript(&text), transcript(&text));
    assert_ne!(transcript(&text), transcript(&text.replace("seed 4", "seed 5")));
}
