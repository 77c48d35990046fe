//! What a node listens on and with: all of it, or it ends at once and says why. Never half, never in plain text instead.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use crate::LIMIT_400;
use crate::command_line::fails;
use crate::harness::{Authority, LimitsFile, Pki, Secret};

/// Each role with what it needs besides its ports.
fn roles(limits: &str) -> [(&'static str, Vec<String>, [&'static str; 2]); 3] {
    let args = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect();
    [
        ("agent", args(&["--zone", "a", "--aggregators", "http://127.0.0.1:1"]), ["--http", "--admin"]),
        (
            "aggregator",
            args(&["--zone", "a", "--controllers", "http://127.0.0.1:1"]),
            ["--listen", "--admin"],
        ),
        ("controller", args(&["--limits", limits]), ["--listen", "--admin"]),
    ]
}

/// Starts a role that has to fail, with these flags besides those it needs.
#[track_caller]
fn role_fails(role: &str, needs: &[String], flags: &[&str], code: i32, told: &[&str]) {
    let args: Vec<&str> =
        [role].into_iter().chain(needs.iter().map(String::as_str)).chain(flags.iter().copied()).collect();
    fails(&args, code, told);
}

#[test]
fn an_occupied_port_ends_every_role_with_flag_address_and_cause() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let limits = LimitsFile::new(LIMIT_400);
    for (role, needs, flags) in roles(&limits.path().display().to_string()) {
        for (flag, other) in [(flags[0], flags[1]), (flags[1], flags[0])] {
            let named = format!("{role} {flag}");
            let told = [named.as_str(), &port, "Address already in use"];
            role_fails(role, &needs, &[flag, &port, other, "127.0.0.1:0"], 1, &told);
        }
    }
}

#[test]
fn one_port_for_two_listeners_of_a_process_is_named() {
    let limits = LimitsFile::new(LIMIT_400);
    for (role, needs, [first, second]) in roles(&limits.path().display().to_string()) {
        // Free a moment ago; that it may be taken meanwhile changes nothing here.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        role_fails(role, &needs, &[first, &port, second, &port], 1, &[&port, "another flag has the port"]);
    }
}

/// Spoils a good set of files, and starts every role with it.
#[track_caller]
fn is_told(what: &str, secret: &Secret, told: &[&str]) {
    let limits = LimitsFile::new(LIMIT_400);
    for (role, needs, [first, second]) in roles(&limits.path().display().to_string()) {
        let args = secret.args();
        let mut flags = vec![first, "127.0.0.1:0", second, "127.0.0.1:0"];
        flags.extend(args.iter().map(String::as_str));
        eprintln!("{role} with {what}");
        role_fails(role, &needs, &flags, 64, told);
    }
}

#[test]
fn bad_certificates_end_every_role_with_file_and_reason() {
    let authority = Authority::new("of the fleet");
    let good = authority.issue("agent");
    let secret = || Secret::new(&good, &authority.pem);

    let missing = secret();
    fs::remove_file(missing.path("..data/tls.key")).unwrap();
    is_told("no key", &missing, &["tls.key", "No such file"]);

    let other = secret();
    other.swap(&good.cert, &authority.issue("agent").key, &authority.pem);
    is_told("another's key", &other, &["tls.key", "belongs to another certificate"]);

    let expired = Secret::new(&authority.issue_expired("agent"), &authority.pem);
    is_told("an expired certificate", &expired, &["tls.crt", "expired at"]);

    let early = Secret::new(&authority.issue_early("agent"), &authority.pem);
    is_told("a certificate for later", &early, &["tls.crt", "not yet valid"]);

    for (name, text, reason) in [
        ("tls.crt", "", "is empty"),
        ("tls.key", "", "is empty"),
        ("ca.crt", "\n", "is empty"),
        ("ca.crt", "dear authority", "holds no certificate"),
    ] {
        let spoilt = secret();
        fs::write(spoilt.path(name), text).unwrap();
        is_told(name, &spoilt, &[name, reason]);
    }
}

#[test]
fn an_unreadable_key_is_told() {
    let pki = Pki::new();
    let key = pki.agent.path("tls.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o000)).unwrap();
    // Nothing is unreadable to root.
    if fs::read(&key).is_err() {
        is_told("a key of another user", &pki.agent, &["tls.key", "Permission denied"]);
    }
    fs::remove_file(&key).unwrap();
    fs::create_dir(&key).unwrap();
    is_told("a folder for a key", &pki.agent, &["tls.key", "it is no file"]);
}

#[test]
fn half_of_the_flags_is_wrong_usage() {
    let limits = LimitsFile::new(LIMIT_400);
    let path = limits.path().display().to_string();
    fails(&["controller", "--limits", &path, "--tls-cert", "a"], 64, &["--tls-key", "--tls-ca"]);
    fails(&["controller", "--limits", &path, "--admin-tls"], 64, &["--tls-cert"]);
}

#[test]
fn plain_text_does_not_leave_this_machine_unless_it_is_allowed() {
    let limits = LimitsFile::new(LIMIT_400);
    let path = limits.path().display().to_string();
    let told = ["--allow-plaintext", "--tls-cert"];
    fails(
        &["controller", "--limits", &path, "--listen", "0.0.0.0:0"],
        64,
        &[told[0], told[1], "--listen 0.0.0.0:0"],
    );
    let here = "http://127.0.0.1:1";
    let aggregator = ["aggregator", "--zone", "a", "--controllers", here, "--listen", "[::]:0"];
    fails(&aggregator, 64, &[told[0], "--listen [::]:0"]);
    let there = "http://192.0.2.1:7100";
    fails(&["agent", "--zone", "a", "--aggregators", &format!("{here},{there}")], 64, &[told[0], there]);
    let https = "https://localhost:7100";
    fails(&["agent", "--zone", "a", "--aggregators", https], 64, &[https, "--tls-cert", "certs dev"]);
}
