//! What goes wrong at the start: named, with what to do, with the right exit code, at once.

use std::net::TcpListener;
use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{LimitsFile, Process};

/// Nobody waits longer for an error.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Runs a command line, and checks its exit code, and that all these texts are on standard error.
#[track_caller]
pub(crate) fn fails(args: &[&str], code: i32, told: &[&str]) {
    let ended = Process::run(args, AT_ONCE);
    let (status, stderr) = (ended.status, &ended.stderr);
    assert_eq!(status.code(), Some(code), "headworks {args:?} said\n{stderr}");
    for text in told {
        assert!(stderr.contains(text), "headworks {args:?} does not say {text:?}, but\n{stderr}");
    }
    assert!(ended.stdout.is_empty(), "errors belong on stderr; stdout has\n{}", ended.stdout);
}

#[test]
fn wrong_usage_is_named_and_exits_with_64() {
    let table: [(&[&str], &[&str]); 21] = [
        (&[], &["Usage"]),
        (&["controler"], &["controler", "controller"]),
        (&["agent", "--zone", "a"], &["--aggregators"]),
        (&["agent", "--aggregators", "http://127.0.0.1:7100"], &["--zone"]),
        (
            &["agent", "--zone", "a", "--aggregators", "localhost:7100"],
            &["--aggregators", "http://host:port"],
        ),
        (&["agent", "--zone", "a", "--aggregators", "http://h:1", "--http", "8100"], &["--http", "8100"]),
        (
            &["aggregator", "--zone", "a", "--controllers", "ftp://h:1"],
            &["--controllers", "http://host:port"],
        ),
        (&["controller"], &["--limits"]),
        (&["controller", "--limits", "x", "--hold", "5"], &["--hold", "5"]),
        (&["controller", "--limits", "x", "--houl", "5s"], &["--houl"]),
        (&["controller", "--limits", "x", "--report-spacing", "5ms"], &["--report-spacing", "10ms to 1s"]),
        (&["load", "--key", "K", "--rps", "0"], &["--rps"]),
        (&["bench"], &["surge", "idle", "fanin", "tick"]),
        (&["bench", "fanin", "--agents", "0"], &["--agents"]),
        (&["bench", "idle", "--duration", "500ms"], &["--duration", "1s to 1h"]),
        (&["bench", "surge", "--after", "0.5"], &["--after", "1 to 100"]),
        (
            &["bench", "surge", "--limit", "100000", "--after", "100", "--surge", "10m"],
            &["--limit", "--surge"],
        ),
        (&["status", "--admin", "127.0.0.1"], &["--admin"]),
        (&["status", "--admin", "http://a:b@127.0.0.1:1"], &["--admin"]),
        (
            &["agent", "--zone", "a", "--aggregators", "http://a:b@h:1"],
            &["--aggregators", "http://host:port"],
        ),
        (&["--log", "a=b=c", "status"], &["--log"]),
    ];
    for (args, told) in table {
        fails(args, 64, told);
    }
}

#[test]
fn a_failure_is_told_whatever_is_logged() {
    for (log, text) in [("x==", "--log"), ("off", "no-such-file")] {
        let args = ["controller", "--check", "--limits", "/no-such-file", "--log", log];
        fails(&args, 64, &[text]);
        let json = [&args[..], &["--log-format", "json"]].concat();
        let ended = Process::run(json, AT_ONCE);
        let line: serde_json::Value = serde_json::from_str(ended.stderr.trim()).unwrap();
        assert!(line["level"] == "error" && line["message"].as_str().unwrap().contains(text), "{line}");
        assert_eq!(ended.status.code(), Some(64));
    }
}

#[test]
fn a_switch_that_its_variable_turns_off_was_not_given() {
    for (variables, said) in [
        (
            [("HEADWORKS_STANDALONE", "false"), ("HEADWORKS_HTTP_TLS", "0"), ("HEADWORKS_ADMIN_TLS", "no")],
            true,
        ),
        ([("HEADWORKS_STANDALONE", "1"), ("HEADWORKS_HTTP_TLS", "0"), ("HEADWORKS_ADMIN_TLS", "no")], false),
    ] {
        let args = ["agent", "--zone", "a", "--aggregators", "http://127.0.0.1:1"];
        let args = args.into_iter().chain(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        let mut agent = Process::start_with("agent", &variables, args);
        if said {
            agent.address_of("http");
        } else {
            assert_eq!(agent.wait(AT_ONCE).code(), Some(64), "{}", agent.stderr.whole());
        }
    }
    // And without aggregators it is asked for some.
    let variables = [("HEADWORKS_STANDALONE", "off"), ("HEADWORKS_ZONE", "a")];
    let mut agent = Process::start_with("agent", &variables, ["agent"]);
    assert_eq!(agent.wait(AT_ONCE).code(), Some(64));
    assert!(agent.stderr.whole().contains("--aggregators"), "{}", agent.stderr.whole());
}

#[test]
fn load_is_not_sent_to_other_machines_by_accident() {
    fails(&["load", "--key", "K", "--target", "http://192.0.2.1:8100"], 64, &["192.0.2.1", "--allow-remote"]);
}

#[test]
fn a_peer_that_is_away_is_a_failure_but_no_wrong_usage() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{unused}");
    fails(&["status", "--admin", &url], 1, &[&url]);
}

#[test]
fn help_and_version_go_to_stdout() {
    for args in [["--help"], ["--version"], ["help"]] {
        let ended = Process::run(args, AT_ONCE);
        assert!(ended.status.success() && ended.stdout.contains("headworks"), "{args:?}: {}", ended.stdout);
    }
}

#[test]
fn unreadable_limits_exit_with_64() {
    let missing = "/nonexistent/limits.yaml";
    for command in [&["controller", "--limits", missing] as &[&str], &["limits", "check", missing]] {
        fails(command, 64, &[missing, "No such file"]);
    }
    fails(&["dev", "--limits", missing], 64, &[missing]);
    let folder = tempfile::tempdir().unwrap();
    fails(&["controller", "--limits", &folder.path().display().to_string()], 64, &["no .yaml file"]);
}

#[test]
fn every_fault_of_a_limits_file_is_named_with_file_line_and_path() {
    let file = LimitsFile::new(
        "limits:\n  - {name: a, rate: 400/fortnight}\n  - {name: b, rat: 5/second}\n  - {name: a, rate: 5/second}\n",
    );
    let path = file.path().display().to_string();
    let [rate, typo, twice] = [(2, "limits[0].rate:"), (3, "limits[1]"), (4, "limits[2].name:")];
    let commands: [&[&str]; 3] =
        [&["controller", "--limits", &path], &["dev", "--limits", &path], &["limits", "check", &path]];
    for command in commands {
        let ended = Process::run(command, AT_ONCE);
        assert_eq!(ended.status.code(), Some(64), "{command:?} said\n{}", ended.stderr);
        for (line, place) in [rate, typo, twice] {
            let start = format!("{path}:{line}:");
            let found = ended.stderr.lines().any(|told| told.starts_with(&start) && told.contains(place));
            assert!(found, "{command:?} has no line `{start}COLUMN: {place} …`, but\n{}", ended.stderr);
        }
    }
}

#[test]
fn good_limits_pass_the_check() {
    let file = LimitsFile::new(LIMIT_400);
    let path = file.path().display().to_string();
    let ended = Process::run(["limits", "check", &path], AT_ONCE);
    assert!(ended.status.success() && ended.stdout.contains("1 limit"), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn limits_that_would_be_held_badly_are_warned_of_and_pass_the_check() {
    let file = LimitsFile::new(
        "limits:\n  - name: quota\n    per: [tenant]\n    rate: 10/minute\n  - {name: many, rate: 500/second}\n  - {name: some, rate: 5/second}\n",
    );
    let path = file.path().display().to_string();
    let warnings = |flags: &[&str]| {
        let ended = Process::run([&["limits", "check", &path], flags].concat(), AT_ONCE);
        assert!(
            ended.status.success() && ended.stdout.contains("3 limits"),
            "{}{}",
            ended.stdout,
            ended.stderr
        );
        ended.stderr
    };
    let of_ten = warnings(&[]);
    let start = format!("{path}:4:11: warning: limits[0].rate: 10/minute");
    assert!(of_ten.starts_with(&start) && of_ten.contains("`enforcement: exact`"), "{of_ten}");
    assert_eq!(of_ten.lines().count(), 1, "{of_ten}");
    let of_many = warnings(&["--agents", "1000"]);
    assert!(of_many.lines().count() == 2 && of_many.contains(":6:24: warning: limits[2].rate:"), "{of_many}");
    fails(&["limits", "check", &path, "--agents", "0"], 64, &["--agents"]);
}

#[test]
fn a_port_in_use_is_named_with_its_flag_and_cause() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let file = LimitsFile::new(LIMIT_400);
    let limits = file.path().display().to_string();
    let free = "127.0.0.1:0";
    let controller = ["controller", "--limits", &limits];
    let aggregator = ["aggregator", "--zone", "a", "--controllers", "http://127.0.0.1:1"];
    let agent = ["agent", "--zone", "a", "--aggregators", "http://127.0.0.1:1"];
    let table: [(&[&str], &str, &str); 8] = [
        (&controller, "--listen", "--admin"),
        (&controller, "--admin", "--listen"),
        (&aggregator, "--listen", "--admin"),
        (&aggregator, "--admin", "--listen"),
        (&agent, "--http", "--admin"),
        (&agent, "--admin", "--http"),
        (&["dev"], "--http", "--admin"),
        (&["dev"], "--admin", "--http"),
    ];
    for (role, flag, other) in table {
        let args = [role, &[flag, &port, other, free]].concat();
        fails(&args, 1, &[flag, &port, "Address already in use"]);
    }
}
