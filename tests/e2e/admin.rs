//! The admin port: nothing is changed without the token, and little is told beyond loopback.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::LIMIT_400;
use crate::harness::{Answer, FleetPlan, LimitsFile, Node, Process, eventually, get, send};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const ON: &str = "{\"on\":true}";
/// What a web page can make a browser send to loopback without asking.
const FORM: [&str; 2] = ["Origin: http://evil.example", "Content-Type: application/x-www-form-urlencoded"];

/// A token file; gone when dropped.
struct TokenFile(TempDir);

impl TokenFile {
    fn new(token: &str) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.write(token);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("token")
    }

    fn write(&self, token: &str) {
        fs::write(self.path(), token).unwrap();
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn flag(name: &str, path: &Path) -> [String; 2] {
    [name.to_owned(), path.display().to_string()]
}

fn controller(limits: &LimitsFile, token: Option<&TokenFile>) -> Node {
    let token = token.map(|token| flag("--admin-token-file", &token.path()));
    let args = [flag("--limits", &limits.path())].into_iter().chain(token).flatten();
    Node::start("controller", "c", &args.collect::<Vec<_>>())
}

fn throw(node: &Node, token: &str) -> Answer {
    let bearer = format!("Authorization: Bearer {token}");
    send(node.address("admin"), "PUT /shadow-all", &[&bearer], ON).unwrap()
}

/// The state of the switch, and its version.
fn switch(node: &Node) -> (bool, u64) {
    let state = node.get("admin", "/shadow-all").unwrap().json();
    (state["on"].as_bool().unwrap(), state["version"].as_u64().unwrap())
}

/// Requests that would change something, on paths that there are and others.
fn changes() -> Vec<(&'static str, &'static [&'static str], &'static str)> {
    let mut changes: Vec<(&str, &[&str], &str)> = vec![
        ("POST /shadow-all", &FORM, "on=true"),
        ("POST /shadow-all", &["Content-Type: text/plain"], ON),
        ("PUT /shadow-all", &["Authorization: Basic YTpi"], ON),
        ("PUT /shadow-all", &["Cookie: token=0123456789abcdef0123456789abcdef"], ON),
        ("PUT /shadow-all?token=0123456789abcdef0123456789abcdef", &[], ON),
    ];
    for start in
        ["PUT /shadow-all", "DELETE /shadow-all", "PATCH /shadow-all", "POST /limits/apply", "POST /shutdown"]
    {
        changes.push((start, &[], ON));
    }
    changes
}

#[test]
fn without_a_configured_token_nothing_can_be_changed() {
    let limits = LimitsFile::new(LIMIT_400);
    let node = controller(&limits, None);
    for (start, head, body) in changes() {
        let answer = send(node.address("admin"), start, head, body).unwrap();
        assert_eq!(answer.status, 403, "{start}: {answer:?}");
        assert!(answer.body.contains("no token configured: start with --admin-token-file"), "{answer:?}");
    }
    assert_eq!(throw(&node, TOKEN).status, 403);
    assert_eq!(switch(&node), (false, 0));
    let refused = node.scrape().value("headworks_admin_refused_total");
    assert!((refused - (changes().len() + 1) as f64).abs() < 0.5, "{refused}");
}

#[test]
fn a_change_without_the_right_token_changes_nothing_and_is_logged_once() {
    let (limits, token) = (LimitsFile::new(LIMIT_400), TokenFile::new(TOKEN));
    let node = controller(&limits, Some(&token));
    for (start, head, body) in changes() {
        let answer = send(node.address("admin"), start, head, body).unwrap();
        assert_eq!(answer.status, 401, "{start}: {answer:?}");
        assert!(answer.head.contains("www-authenticate: bearer"), "{answer:?}");
    }
    let almost = format!("{TOKEN}0");
    for wrong in ["", &TOKEN[1..], &TOKEN[..31], &almost, "0123456789abcdef0123456789abcdeF"] {
        assert_eq!(throw(&node, wrong).status, 401, "{wrong}");
    }
    assert_eq!(switch(&node), (false, 0));
    assert_eq!(node.says("admin request refused"), changes().len() + 5);
    assert!(!node.process.stderr.lines().iter().any(|line| line.contains(TOKEN)), "the log shows the token");
    assert_eq!(throw(&node, TOKEN).json()["on"], true);
}

#[test]
fn guessing_is_slowed_down_and_never_locks_out_the_right_token() {
    let (limits, token) = (LimitsFile::new(LIMIT_400), TokenFile::new(TOKEN));
    let node = controller(&limits, Some(&token));
    let guesses = (0..1000).map(|guess| throw(&node, &format!("{guess:032}")));
    let slowed = guesses.inspect(|answer| assert!([401, 429].contains(&answer.status), "{answer:?}"));
    let slowed =
        slowed.filter(|answer| answer.status == 429 && answer.head.contains("retry-after: 1")).count();
    assert!(slowed > 900, "only {slowed} of 1000 guesses were slowed down");
    assert_eq!(switch(&node), (false, 0));
    assert!(node.says("admin request refused") < 60, "guessing fills the log");
    assert!((node.scrape().value("headworks_admin_refused_total") - 1000.0).abs() < 0.5);
    assert_eq!(throw(&node, TOKEN).status, 200);
    assert!(switch(&node).0);
}

#[test]
fn with_the_token_a_request_must_still_make_sense() {
    let (limits, token) = (LimitsFile::new(LIMIT_400), TokenFile::new(TOKEN));
    let node = controller(&limits, Some(&token));
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let status =
        |start: &str, body: &str| send(node.address("admin"), start, &[&bearer], body).unwrap().status;
    for start in ["POST /shadow-all", "DELETE /shadow-all", "POST /status"] {
        assert_eq!(status(start, ON), 405, "{start}");
    }
    assert_eq!(status("PUT /reload", ON), 404);
    for body in ["", "on", "{}", "{\"on\":1}", "{\"on\":true,\"for\":5}", "on=true"] {
        assert_eq!(status("PUT /shadow-all", body), 400, "{body}");
    }
    assert_eq!(switch(&node), (false, 0));
}

#[test]
fn a_token_follows_its_file_and_a_broken_file_keeps_the_old_one() {
    let (limits, token) = (LimitsFile::new(LIMIT_400), TokenFile::new(TOKEN));
    let node = controller(&limits, Some(&token));
    token.write("short\n");
    eventually("the broken file is told of", Duration::from_secs(5), || {
        (node.says("the old admin token stays") != 1).then(|| "not yet".to_owned())
    });
    assert_eq!(throw(&node, TOKEN).status, 200);
    let next = "fedcba9876543210fedcba9876543210";
    token.write(&format!("  {next}\n"));
    eventually("the new token is taken", Duration::from_secs(5), || {
        (throw(&node, next).status != 200).then(|| "not yet".to_owned())
    });
    assert!([401, 429].contains(&throw(&node, TOKEN).status));
}

#[test]
fn a_file_that_holds_no_token_is_named_at_the_start() {
    let limits = LimitsFile::new(LIMIT_400);
    let path = limits.path().display().to_string();
    let missing = PathBuf::from("/nonexistent/token");
    let files =
        ["", " \n", "fifteen bytes 1", "two words of letters", "\u{1}0123456789abcdef"].map(TokenFile::new);
    for file in files.iter().map(TokenFile::path).chain([missing]) {
        let file = file.display().to_string();
        let controller: &[&str] = &["controller", "--limits", &path];
        let aggregator: &[&str] = &["aggregator", "--zone", "a", "--controllers", "http://127.0.0.1:1"];
        let agent: &[&str] = &["agent", "--zone", "a", "--aggregators", "http://127.0.0.1:1"];
        for role in [controller, aggregator, agent] {
            let args = [role, &["--admin-token-file", &file]].concat();
            let ended = Process::run(args, Duration::from_secs(2));
            assert_eq!(ended.status.code(), Some(64), "{role:?} {}", ended.stderr);
            assert!(ended.stderr.contains(&file), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_token_that_everybody_can_read_is_warned_of() {
    let (limits, token) = (LimitsFile::new(LIMIT_400), TokenFile::new(TOKEN));
    fs::set_permissions(token.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let node = controller(&limits, Some(&token));
    assert_eq!(node.says("every user of this machine can read the token"), 1);
}

fn wide_args(limits: &LimitsFile, more: &[String]) -> Vec<String> {
    let fixed =
        ["controller", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0", "--limits"].map(str::to_owned);
    fixed.into_iter().chain([limits.path().display().to_string()]).chain(more.iter().cloned()).collect()
}

/// A controller whose admin port is on all interfaces, and where that port answers on loopback.
fn wide(limits: &LimitsFile, more: &[String]) -> (Process, String) {
    let mut process = Process::start("controller", wide_args(limits, more));
    let address = process.address_of("admin").replace("0.0.0.0", "127.0.0.1");
    (process, address)
}

#[test]
fn beyond_loopback_what_names_callers_needs_the_token() {
    let (limits, token) = (LimitsFile::new(LIMIT_400), TokenFile::new(TOKEN));
    let token_flag = flag("--admin-token-file", &token.path());
    let refused = Process::run(wide_args(&limits, &token_flag), Duration::from_secs(5));
    assert_eq!(refused.status.code(), Some(64), "a token in plain text: {}", refused.stderr);
    assert!(refused.stderr.contains("--admin-tls"), "{}", refused.stderr);
    let (_process, admin) =
        wide(&limits, &[token_flag.as_slice(), &["--allow-plaintext".to_owned()]].concat());
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/status", 401),
        ("/shadow-all", 401),
        ("/limits", 401),
        ("/trial?limit=checkout", 401),
    ] {
        assert_eq!(get(&admin, path).unwrap().status, status, "{path}");
    }
    let url = format!("http://{admin}");
    let ended = Process::run(["status", "--admin", &url], Duration::from_secs(5));
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("--token-file"), "{}", ended.stderr);
    let file = token.path().display().to_string();
    let ended = Process::run(["status", "--admin", &url, "--token-file", &file], Duration::from_secs(5));
    assert!(ended.status.success() && ended.stdout.contains("checkout"), "{}", ended.stderr);
}

#[test]
fn beyond_loopback_without_a_token_is_warned_of_once_and_tells_no_status() {
    let limits = LimitsFile::new(LIMIT_400);
    let (process, admin) = wide(&limits, &[]);
    let warnings = || process.stderr.lines().iter().filter(|line| line.contains("beyond loopback")).count();
    assert_eq!((get(&admin, "/status").unwrap().status, get(&admin, "/metrics").unwrap().status), (403, 200));
    assert_eq!(warnings(), 1);
}

#[test]
fn the_listener_for_metrics_has_nothing_else() {
    let limits = LimitsFile::new(LIMIT_400);
    let args = [flag("--limits", &limits.path()), ["--metrics", "127.0.0.1:0"].map(str::to_owned)].concat();
    let mut node = Node::start("controller", "c", &args);
    let metrics = node.process.address_of("metrics");
    for (path, status) in [
        ("/metrics", 200),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/status", 404),
        ("/shadow-all", 404),
        ("/limits", 404),
        ("/trial?limit=checkout", 404),
    ] {
        assert_eq!(get(&metrics, path).unwrap().status, status, "{path}");
    }
    assert_eq!(send(&metrics, "POST /metrics", &[], "").unwrap().status, 405);
    assert_eq!(send(&metrics, "PUT /shadow-all", &[], ON).unwrap().status, 404);
}

/// The local addresses on which a process listens, as the kernel writes them: the address of loopback is 0100007F.
fn listening(pid: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(Result::ok);
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    let sockets: HashSet<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    let fields = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    let own = fields.filter(|fields| fields[3] == "0A" && sockets.contains(fields[9]));
    own.map(|fields| fields[1].to_owned()).collect()
}

#[test]
fn every_role_listens_on_loopback_alone() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    for node in fleet.nodes() {
        let addresses = listening(node.process.pid());
        assert_eq!(addresses.len(), 2, "{}: {addresses:?}", node.id);
        assert!(
            addresses.iter().all(|address| address.starts_with("0100007F:")),
            "{}: {addresses:?}",
            node.id
        );
    }
}
