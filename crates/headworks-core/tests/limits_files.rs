//! The example files under tests/configs: each bad one has its faults beside it in a file of the same name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use headworks_core::limits::{LimitSet, SurgeGuard, parse_bytes, print};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/configs").join(name)
}

/// The content of every file with this extension, by its name without extension.
fn files(folder: &Path, extension: &str) -> BTreeMap<String, Vec<u8>> {
    let paths = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be listed").path());
    let wanted = paths.filter(|path| path.extension().is_some_and(|e| e == extension));
    wanted.map(|path| (stem(&path), std::fs::read(&path).expect("the file can be read"))).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("files have names").to_string_lossy().into_owned()
}

fn good(name: &str) -> LimitSet {
    let bytes = std::fs::read(folder("good").join(name)).expect("the file can be read");
    parse_bytes(&bytes).unwrap_or_else(|faults| panic!("{name}:\n{faults}"))
}

/// What is wrong with the faults of a bad file, if anything.
fn complaint(name: &str, yaml: &[u8], expected: Option<&Vec<u8>>) -> Option<String> {
    let found = parse_bytes(yaml).map_or_else(|faults| faults.to_string(), |_| "no fault".to_owned());
    let Some(expected) = expected else {
        return Some(format!("{name}.yaml has no {name}.txt beside it; if this is right, it holds\n{found}"));
    };
    let expected = String::from_utf8_lossy(expected);
    let expected = expected.trim_end();
    (found != expected).then(|| format!("{name}.yaml: found\n{found}\nbut expected\n{expected}"))
}

#[test]
fn every_bad_file_is_refused_with_the_faults_beside_it() {
    let expected = files(&folder("bad"), "txt");
    let bad = files(&folder("bad"), "yaml");
    assert!(!bad.is_empty());
    let complaints: Vec<String> =
        bad.iter().filter_map(|(name, yaml)| complaint(name, yaml, expected.get(name))).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn every_list_of_faults_belongs_to_a_bad_file() {
    let bad = files(&folder("bad"), "yaml");
    let astray: Vec<_> = files(&folder("bad"), "txt").into_keys().filter(|n| !bad.contains_key(n)).collect();
    assert!(astray.is_empty(), "no .yaml for {astray:?}");
}

#[test]
fn every_message_starts_in_lower_case_and_ends_without_a_full_stop() {
    for (name, yaml) in files(&folder("bad"), "yaml") {
        for fault in parse_bytes(&yaml).unwrap_err().listed() {
            let message = &fault.message;
            assert!(!message.starts_with(char::is_uppercase), "{name}: {message}");
            assert!(!message.ends_with('.'), "{name}: {message}");
        }
    }
}

#[test]
fn every_good_file_is_accepted_and_printed_back_the_same() {
    let good_files = files(&folder("good"), "yaml");
    assert!(!good_files.is_empty());
    for name in good_files.keys() {
        let set = good(&format!("{name}.yaml"));
        let printed = print(&set);
        let again =
            parse_bytes(printed.as_bytes()).unwrap_or_else(|faults| panic!("{name}: {faults}\n{printed}"));
        assert_eq!(again, set, "{name}");
        assert_eq!(print(&again), printed, "{name}");
    }
}

#[test]
fn line_ends_and_a_byte_order_mark_make_no_difference() {
    let plain = good("line-ends-lf.yaml");
    for other in ["line-ends-crlf.yaml", "line-ends-crlf-with-mark.yaml"] {
        assert_eq!(good(other).digest(), plain.digest(), "{other}");
    }
    let mut values = plain.limits().iter().flat_map(|limit| &limit.matches);
    assert!(values.all(|(_, value)| !value.as_str().contains('\r')));
}

/// A node that holds them already need not be sent them again.
#[test]
fn limits_without_anything_new_keep_the_digest_that_earlier_releases_gave_them() {
    for (name, digest) in [
        ("budgets.yaml", "c8bb2abef53bc5ebbd14b8552ec4ac29"),
        ("exact.yaml", "cd4cb5e70db578874934a1eb43f8b0f4"),
        ("silence.yaml", "9d40e0f6dedd5f686eeb2e86cf8bd92e"),
    ] {
        assert_eq!(good(name).digest().to_string(), digest, "{name}");
    }
    let digest = |rest: &str| {
        parse_bytes(format!("limits: [{{name: a, rate: 5/second, {rest}}}]").as_bytes()).unwrap().digest()
    };
    let differ =
        ["match: {k: a, j: b}", "match: {k: a, j: b}, exactly: true", "match: {j: b, k: a}, exactly: true"];
    let digests: std::collections::HashSet<_> = differ.into_iter().map(digest).collect();
    assert_eq!(digests.len(), 3);
}

#[test]
fn values_stay_as_written() {
    let set = good("values-stay-as-written.yaml");
    for (name, key, text) in [
        ("country", "country", "NO"),
        ("code", "code", "007"),
        ("beta", "beta", "true"),
        ("ver", "ver", "1.10"),
        ("slot", "slot", "12:30"),
        ("sha", "sha", "1e10"),
        ("quoted", "n", "~"),
        ("quoted", "m", "null"),
        ("quoted", "y", "<<"),
        ("spaced", "folded", "two words more"),
        ("spaced", "literal", "line\n"),
        ("spaced", "quoted key", " leading # and \"quotes\" é"),
    ] {
        let limit = set.get(name).unwrap();
        assert!(limit.matches.contains(&(key.to_owned(), text.into())), "{name}: {:?}", limit.matches);
    }
}

#[test]
fn a_budget_saves_up_what_the_file_says_or_a_minute_of_its_rate() {
    let set = good("budgets.yaml");
    let budget = |name: &str| set.get(name).unwrap().budget();
    let budgets = ["default", "one", "all", "quoted"].map(budget);
    assert_eq!(budgets, [Some(60), Some(1), Some(6), Some(17)]);
    assert_eq!(set.get("default").unwrap().burst, None);
}

#[test]
fn a_surge_guard_is_read_to_the_hundredth() {
    let set = good("surge-guards.yaml");
    let guard = |name: &str| set.get(name).unwrap().surge_guard;
    assert_eq!(guard("default"), SurgeGuard::Hundredths(150));
    assert_eq!(guard("default-written-out"), guard("default"));
    assert_eq!(guard("off"), SurgeGuard::Off);
    assert_eq!(
        ["least", "fine", "most"].map(guard),
        [SurgeGuard::Hundredths(100), SurgeGuard::Hundredths(105), SurgeGuard::Hundredths(10_000)]
    );
}

#[test]
fn burst_and_surge_guard_make_another_digest() {
    let digest = |rest: &str| {
        let text = format!("limits:\n  - {{name: a, {rest}}}\n");
        parse_bytes(text.as_bytes()).unwrap().digest()
    };
    assert_ne!(digest("rate: 60/minute"), digest("rate: 60/minute, burst: 5"));
    assert_ne!(digest("rate: 60/second"), digest("rate: 60/second, surge_guard: off"));
    assert_ne!(digest("rate: 60/second"), digest("rate: 60/second, max_rate_per_agent: 9/second"));
    assert_ne!(digest("rate: 60/second"), digest("rate: 60/minute"));
}
