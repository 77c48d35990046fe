//! Whatever bytes a limits file has: no panic, no endless reading, and what is accepted says the same when it is printed.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

use std::path::Path;

use headworks_core::limits::{LimitSet, parse, parse_bytes, print};

/// Every limits file that the tests have, good and bad.
fn corpus() -> Vec<Vec<u8>> {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/configs");
    let folders = ["good", "bad"].map(|folder| std::fs::read_dir(configs.join(folder)).unwrap());
    let files = folders.into_iter().flatten().map(|file| file.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "yaml")).collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

const WORDS: [&[u8]; 24] = [
    b"limits:",
    b"- name: x\n",
    b"\n    rate: 1/second",
    b"per: [a, b]",
    b"match: {a: b}",
    b"burst: 5",
    b"surge_guard: 1.5",
    b"on_silence: {policy: hold, for: 5s}",
    b"max_buckets: 1",
    b"missing: drop",
    b"order: -1",
    b"cost: 2",
    b"/minute",
    b"unlimited",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!str ",
    b"? ",
    b"|\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"{{[[",
];

fn is_sound(set: &LimitSet) {
    for limit in set.limits() {
        assert!(limit.rate.per_second() >= 0.0 && limit.cost > 0 && limit.max_buckets > 0, "{limit:?}");
        assert!(!limit.name.is_empty() && !limit.name.chars().any(char::is_control), "{limit:?}");
    }
    let printed = print(set);
    let again = parse(&printed).unwrap_or_else(|faults| panic!("{faults}\n{printed}"));
    assert_eq!(again.digest(), set.digest(), "{printed}");
}

/// Where and how a text was refused, without what it quotes.
fn kind(message: &str) -> String {
    message.split('`').step_by(2).flat_map(str::chars).filter(|c| c.is_alphabetic()).take(60).collect()
}

#[test]
fn no_limits_file_makes_the_reader_panic() {
    let ran = headworks_fuzz::run("limits file", corpus(), &WORDS, |input| match parse_bytes(input) {
        Ok(set) => {
            is_sound(&set);
            format!("{} limits", set.limits().len().min(9))
        }
        Err(faults) => {
            assert!(!faults.listed().is_empty());
            assert!(faults.listed().iter().all(|fault| fault.line > 0 && fault.column > 0), "{faults}");
            let told = faults.to_string();
            assert!(!told.chars().any(|c| c.is_control() && c != '\n'), "{told:?}");
            kind(&faults.listed()[0].message)
        }
    });
    assert!(ran.inputs > 1000 && ran.kinds > 50, "{ran:?}");
}
