//! `headworks limits import`, on the files of `tests/configs/import`.

use std::time::Duration;

use crate::command_line::fails;
use crate::harness::{LimitsFile, Process};

const AT_ONCE: Duration = Duration::from_secs(5);

fn file(name: &str) -> String {
    format!("{}/../../tests/configs/import/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// What the import prints, and what it says of what is missing.
#[track_caller]
fn import(from: &str, more: &[&str]) -> (String, String) {
    let path = file(from);
    let args = ["limits", "import", "--from", from, &path].into_iter().chain(more.iter().copied());
    let ended = Process::run(args, AT_ONCE);
    assert!(ended.status.success(), "{}", ended.stderr);
    (ended.stdout, ended.stderr)
}

#[test]
fn what_it_prints_is_a_sound_limits_file_and_what_is_missing_is_listed_with_its_line() {
    for (from, limits, missing) in [
        (
            "envoy-ratelimit",
            "5 limits",
            ["envoy-ratelimit.yaml:24:5: ", "envoy-ratelimit.yaml:26:17: "].as_slice(),
        ),
        ("limitador", "2 limits", &["limitador.yaml:12:3: "]),
    ] {
        let (text, told) = import(from, &[]);
        let imported = LimitsFile::new(&text);
        let path = imported.path().display().to_string();
        let checked = Process::run(["limits", "check", &path], AT_ONCE);
        assert!(checked.stdout.contains(limits), "{from}: {}{}", checked.stdout, checked.stderr);
        assert_eq!(told.lines().count(), missing.len(), "{told}");
        assert!(missing.iter().all(|missing| told.contains(missing)), "{told}");
    }
}

#[test]
fn everything_may_be_asked_to_be_exact_or_to_come_whole_or_not_at_all() {
    let (text, _) = import("envoy-ratelimit", &["--enforcement", "exact"]);
    assert_eq!(text.matches("enforcement: exact").count(), 5, "{text}");
    let (text, _) = import("envoy-ratelimit", &["--enforcement", "drop-ratio"]);
    assert!(!text.contains("enforcement"), "{text}");
    let path = file("limitador");
    fails(
        &["limits", "import", "--from", "limitador", "--strict", &path],
        64,
        &["limitador.yaml:12:3", "--strict"],
    );
    fails(
        &["limits", "import", "--from", "envoy-ratelimit", &path],
        64,
        &["limitador.yaml:1:1: must be a mapping"],
    );
}
