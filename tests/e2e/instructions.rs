//! How many instructions a decision takes, by callgrind: the same on every machine and at any load.

use std::path::Path;
use std::process::Command;

/// Decisions counted, of each kind.
const COUNT: u32 = 2000;
/// By how much a decision may take more than it did.
const MORE: f64 = 1.1;

/// Instructions that a decision of each kind takes, as a multiple of those of the reference loop in the same binary. Who makes
/// decisions cheaper lowers them.
const KNOWN: [(&str, f64); 6] = [
    ("prepared", 1.05),
    ("prepared-guard", 1.14),
    ("prepared-3", 2.02),
    ("keyed", 6.11),
    ("keyed-cold", 6.07),
    ("check", 8.87),
];

#[test]
fn a_decision_takes_no_more_instructions_than_it_did() {
    let reference = instructions("reference");
    let dearer: Vec<String> = KNOWN
        .iter()
        .map(|(kind, known)| (kind, instructions(kind) / reference, known))
        .filter(|(_, ratio, known)| *ratio > *known * MORE)
        .map(|(kind, ratio, known)| format!("{kind}: {ratio:.2} times the reference, not {known:.2}"))
        .collect();
    assert!(dearer.is_empty(), "{} instructions in the reference loop\n{}", reference, dearer.join("\n"));
}

/// Those of one turn of the loop of `examples/decisions.rs`.
fn instructions(kind: &str) -> f64 {
    let target = Path::new(env!("CARGO_BIN_EXE_headworks")).parent().unwrap();
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*::measured*"])
        .arg(target.join("examples/decisions"))
        .args([kind, &COUNT.to_string()])
        .output()
        .expect("valgrind is missing: install Debian's package valgrind");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let collected = told.lines().find_map(|line| line.split("Collected :").nth(1));
    let collected: f64 = collected.and_then(|number| number.trim().parse().ok()).expect(&told);
    assert!(collected > f64::from(COUNT), "nothing was counted: {told}");
    collected / f64::from(COUNT)
}
