//! Every flag of what ships for deployments is one that the program takes: each command line, with `--check`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{Ended, LimitsFile, Process, deployed};

const QUICK: Duration = Duration::from_secs(5);
const ROLES: [&str; 3] = ["controller", "aggregator", "agent"];
/// What Kubernetes knows of a pod.
const OF_A_POD: [(&str, &str); 3] = [("POD_NAME", "pod-0"), ("NODE_NAME", "node-1"), ("ZONE", "a")];

/// What a command line names by its path, at other paths.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        let made = Process::run(["certs", "dev", "--out", &files.at("certs")], QUICK);
        assert!(made.status.success(), "{}", made.stderr);
        fs::write(files.at("token"), "0123456789abcdef").unwrap();
        files
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The value of a flag or a variable with the paths of this machine.
    fn placed(&self, role: &str, value: &str) -> String {
        let certs = |end: &str| self.at(&format!("certs/{role}.{end}"));
        match value.strip_prefix("/etc/headworks/") {
            None => value.to_owned(),
            Some("limits" | "limits.yaml") => deployed("limits.yaml").display().to_string(),
            Some("token" | "admin/token") => self.at("token"),
            Some("tls/ca.crt") => self.at("certs/ca.crt"),
            Some(path) if path.ends_with(".crt") => certs("crt"),
            Some(path) if path.ends_with(".key") => certs("key"),
            Some(other) => panic!("no file stands for {other}"),
        }
    }
}

/// Lists that begin with a role, one item a line: `command` and `args` of containers.
fn command_lines(yaml: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut within = false;
    for line in yaml.lines() {
        match line.trim().strip_prefix("- ") {
            Some(role) if ROLES.contains(&role) => {
                found.push(vec![role.to_owned()]);
                within = true;
            }
            Some(flag) if within => found.last_mut().unwrap().push(flag.to_owned()),
            _ => within = false,
        }
    }
    found
}

fn of_this_pod(argument: &str) -> String {
    OF_A_POD
        .iter()
        .fold(argument.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}

#[track_caller]
fn is_sound(what: &Path, checked: &Ended) {
    assert!(checked.status.success(), "{}: {}", what.display(), checked.stderr);
    assert!(checked.stdout.contains("are sound"), "{}", checked.stdout);
    assert!(!checked.stderr.contains("ERROR"), "{}: {}", what.display(), checked.stderr);
}

#[test]
fn command_lines_of_containers_pass_the_check() {
    let files = Files::new();
    let places = [
        ("compose/compose.yaml", 6),
        ("kubernetes/controller.yaml", 1),
        ("kubernetes/zone/aggregator.yaml", 1),
        ("kubernetes/zone/agent.yaml", 1),
        ("kubernetes/sidecar.yaml", 1),
    ];
    for (file, expected) in places {
        let path = deployed(file);
        let lines = command_lines(&fs::read_to_string(&path).unwrap());
        assert_eq!(lines.len(), expected, "{file}: {lines:?}");
        for line in lines {
            let role = line[0].clone();
            let args = line.iter().map(|argument| match of_this_pod(argument).split_once('=') {
                Some((flag, value)) => format!("{flag}={}", files.placed(&role, value)),
                None => argument.clone(),
            });
            is_sound(&path, &Process::run(args.chain(["--check".to_owned()]), QUICK));
        }
    }
}

#[test]
fn variables_of_units_pass_the_check() {
    let files = Files::new();
    for role in ROLES {
        let path = deployed(&format!("systemd/{role}.env"));
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let variables: Vec<(String, String)> = lines
            .map(|line| line.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), files.placed(role, value)))
            .collect();
        assert!(variables.len() > 5, "{variables:?}");
        let named = text.lines().filter_map(|line| line.trim_start_matches('#').split_once('='));
        for (name, _) in named.filter(|(name, _)| name.starts_with("HEADWORKS_")) {
            let help = Process::run([role, "--help"], QUICK).stdout;
            assert!(help.contains(name), "{role} has no variable {name}");
        }
        let given: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut checked = Process::start_with(role, &given, [role, "--check"]);
        let status = checked.wait(QUICK);
        let (stdout, stderr) = (checked.stdout.whole(), checked.stderr.whole());
        is_sound(&path, &Ended { status, stdout, stderr });
    }
}

#[test]
fn limits_that_ship_are_sound_and_the_same_everywhere() {
    let path = deployed("limits.yaml");
    let checked = Process::run(["limits", "check", &path.display().to_string()], QUICK);
    assert!(checked.status.success() && checked.stderr.is_empty(), "{}", checked.stderr);
    for copy in ["kubernetes/limits.yaml", "compose/limits/limits.yaml"] {
        assert_eq!(fs::read(deployed(copy)).unwrap(), fs::read(&path).unwrap(), "{copy}");
    }
}

#[test]
fn pods_are_what_their_namespace_lets_in() {
    let read = |file: &str| fs::read_to_string(deployed("kubernetes").join(file)).unwrap();
    assert!(read("namespace.yaml").contains("pod-security.kubernetes.io/enforce: restricted"));
    for file in ["controller.yaml", "zone/aggregator.yaml", "zone/agent.yaml"] {
        let text = read(file);
        for denied in ["hostPort", "hostNetwork", "hostPath", "hostPID", "privileged: true"] {
            assert!(!text.contains(denied), "{file} has {denied}");
        }
        let wanted = ["runAsNonRoot: true", "type: RuntimeDefault", "Escalation: false", "drop: [ALL]"];
        for wanted in wanted {
            assert!(text.contains(wanted), "{file} lacks {wanted}");
        }
    }
}

#[test]
fn units_never_give_up_and_rules_are_looked_at_every_few_seconds() {
    let unit = fs::read_to_string(deployed("systemd/headworks@.service")).unwrap();
    let (of_the_unit, _) = unit.split_once("[Service]").unwrap();
    assert!(of_the_unit.contains("\nStartLimitIntervalSec=0\n") && !unit.contains("RestartPrevent"));
    // Debian's promtool knows no service discovery by Kubernetes, so this one is only read.
    let elsewhere = fs::read_to_string(deployed("kubernetes/prometheus.yml")).unwrap();
    assert!(elsewhere.contains("\nglobal:\n  evaluation_interval: 5s\n"), "{elsewhere}");
    for file in ["prometheus/rules.yaml", "prometheus/alerts.yaml"] {
        let text = fs::read_to_string(deployed(file)).unwrap();
        let mut after_groups = text.lines().skip_while(|line| !line.starts_with("  - name: "));
        assert_eq!(after_groups.nth(1), Some("    interval: 5s"), "{file}");
        assert_eq!(text.matches("\n  - name: ").count(), 1, "{file}: each group needs its interval");
    }
}

#[test]
fn a_check_finds_what_a_start_would_find_and_opens_nothing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let gone = LimitsFile::new(crate::LIMIT_400).path().display().to_string();
    let good = LimitsFile::new(crate::LIMIT_400);
    let good = good.path().display().to_string();
    let controller = |limits: &str| {
        let args = ["controller", "--check", "--limits", limits, "--listen", &address, "--admin", &address];
        Process::run(args, QUICK)
    };
    let checked = controller(&good);
    assert!(checked.status.success(), "a port that is taken is no matter of the check: {}", checked.stderr);
    assert_eq!(controller(&gone).status.code(), Some(64), "its file is gone");
    let wide = ["aggregator", "--check", "--zone", "a", "--controllers", "http://elsewhere:7200"];
    let refused = Process::run(wide, QUICK);
    assert!(refused.status.code() == Some(64) && refused.stderr.contains("--allow-plaintext"));
    let agent = ["agent", "--check", "--standalone", "--limits", &good];
    let refused = Process::run(agent, QUICK);
    assert!(refused.status.code() == Some(64) && refused.stderr.contains("enforcement: exact"));
}

/// Where a folder has what it should, by its name.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_command_has_a_manual_page_and_shells_complete_it() {
    let folder = tempfile::tempdir().unwrap();
    let made = Process::run(["man", "--out", &folder.path().display().to_string()], QUICK);
    assert!(made.status.success(), "{}", made.stderr);
    let pages = names_in(folder.path());
    for command in ["headworks", "headworks-agent", "headworks-controller", "headworks-limits-check"] {
        assert!(pages.contains(&format!("{command}.1")), "{pages:?}");
    }
    assert!(Process::run(["man"], QUICK).stdout.starts_with(".ie"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(Process::run(["completions", shell], QUICK).stdout.contains("aggregator"), "{shell}");
    }
    let script = folder.path().join("completions");
    fs::write(&script, Process::run(["completions", "bash"], QUICK).stdout).unwrap();
    let ask = format!(
        "source {}; COMP_WORDS=(headworks con); COMP_CWORD=1; _headworks headworks con headworks; echo ${{COMPREPLY[@]}}",
        script.display()
    );
    let completed = std::process::Command::new("bash").args(["-c", &ask]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout).trim(), "controller", "{completed:?}");
}
