use std::sync::Arc;

use headworks_core::agent::KeptBucket;
use headworks_core::bucket::BucketKey;
use headworks_core::limits::LimitSet;
use headworks_core::message::View;
use headworks_core::units::Headroom;

use super::*;

fn kept() -> Kept {
    let text = "limits:\n  - {name: checkout, rate: 400/second}\n  - {name: banned, rate: 0/second}\n";
    let set = headworks_core::limits::parse(text).unwrap();
    let key = BucketKey::whole("checkout".into());
    Kept {
        age: Some(Duration::from_secs(1)),
        view: View { aggregators: 2, agents: 40, demand: 800.0 },
        generation: 3,
        limits: Arc::new(LimitSet::new(set.limits().iter().map(|limit| (**limit).clone()).collect())),
        buckets: vec![KeptBucket { key, headroom: Headroom::new(0.5).unwrap(), demand: 20.0 }],
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

const SAVED: u64 = 1_700_000_000;

#[test]
fn a_file_gives_back_what_was_kept_and_how_old_it_is_by_now() {
    let bytes = encode(&kept(), at(SAVED));
    let read = decode(&bytes, at(SAVED + 30)).unwrap();
    assert_eq!(read, Kept { age: Some(Duration::from_secs(31)), ..kept() });
}

#[test]
fn a_wall_clock_that_was_set_makes_headrooms_old_and_never_younger() {
    let bytes = encode(&kept(), at(SAVED));
    let age = |now| decode(&bytes, now).unwrap().age;
    assert_eq!(age(at(SAVED - 3600)), None, "an hour back");
    assert_eq!(age(UNIX_EPOCH), None);
    assert_eq!(age(at(SAVED + 3600)), Some(Duration::from_secs(3601)), "an hour ahead: older than any hold");
    assert_eq!(age(at(SAVED * 9)), Some(Duration::from_secs(SAVED * 8 + 1)));
    let at_no_time = encode(&kept(), UNIX_EPOCH - Duration::from_secs(5));
    assert_eq!(decode(&at_no_time, at(SAVED)).unwrap().age, None, "saved before the clock was set");
    let unknown = encode(&Kept { age: None, ..kept() }, at(SAVED));
    assert!(
        decode(&unknown, at(SAVED))
            .unwrap()
            .age
            .is_none_or(|age| age > Duration::from_secs(u64::from(u32::MAX)))
    );
}

#[test]
fn every_damage_is_an_error_that_says_so() {
    let bytes = encode(&kept(), at(SAVED));
    for length in 0..bytes.len() {
        decode(&bytes[..length], at(SAVED)).unwrap_err();
    }
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x10;
        decode(&damaged, at(SAVED)).unwrap_err();
    }
    assert!(matches!(decode(b"limits: []\n", at(SAVED)), Err(Unusable::Foreign)));
    assert!(matches!(decode(b"headworks-state 2 00\n", at(SAVED)), Err(Unusable::Foreign)));
}

#[test]
fn nodes_that_share_a_directory_have_files_of_their_own() {
    let name = |node: &str| path(Path::new("/d"), node).display().to_string();
    assert_eq!(name("agent-1"), "/d/agent-1.state");
    assert_eq!(name("../a/b"), "/d/%2e%2e%2fa%2fb.state");
    assert_ne!(name("a%2f"), name("a/"));
    let long = "é".repeat(64);
    assert!(name(&long).len() < 255 && name(&long) != name(&"é".repeat(63)));
}

#[test]
fn a_file_is_written_whole_and_a_directory_that_was_removed_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = path(&directory.path().join("below"), "agent");
    assert!(read(&path, at(SAVED)).unwrap().is_none());
    for seconds in [0, 5] {
        write(&path, &encode(&kept(), at(SAVED + seconds))).unwrap();
    }
    assert_eq!(read(&path, at(SAVED + 5)).unwrap().unwrap(), kept());
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left over");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    write(&path, &encode(&kept(), at(SAVED))).unwrap();
    assert!(read(&path, at(SAVED)).unwrap().is_some());
}

#[test]
fn a_file_of_no_use_is_moved_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = path(directory.path(), "agent");
    fs::write(&path, "not a state file").unwrap();
    assert!(matches!(read(&path, at(SAVED)), Err(Unusable::Foreign)));
    assert_eq!(set_aside(&path).unwrap(), directory.path().join("agent.state.unusable"));
    assert!(read(&path, at(SAVED)).unwrap().is_none());
}

#[test]
fn a_directory_that_is_a_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    write(&path(&file, "agent"), b"x").unwrap_err();
    read(&path(&file, "agent"), at(SAVED)).unwrap_err();
}
