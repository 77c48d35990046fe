//! A real Envoy, with a configuration of the test's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::http::{Answer, get};
use super::process::{Ended, Process, without_our_variables};
use super::wait::{eventually, within};

const MISSING: &str = "Envoy 1.40 is missing: `bash tests/run` fetches it; or name one in HEADWORKS_ENVOY, or put it on the PATH";
/// How long it may take to start on a machine that does much else.
const START: Duration = Duration::from_secs(30);

/// A running Envoy; killed when dropped.
pub(crate) struct Envoy {
    pub(crate) process: Process,
    /// Host and port of its admin port.
    pub(crate) admin: String,
    _folder: TempDir,
}

impl Envoy {
    /// Starts it with a configuration in YAML and these variables, and waits until it is ready. Its listeners should ask for port 0,
    /// and so should its admin port, if the configuration says anything of it.
    #[track_caller]
    pub(crate) fn start(name: &str, yaml: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("admin");
        let mut command = command(folder.path(), yaml, variables);
        command.arg("--admin-address-path").arg(&told);
        let mut process = Process::of(name, command);
        let admin = within(START, || match fs::read_to_string(&told) {
            Ok(address) if !address.is_empty() => Some(Some(address)),
            _ => process.ended().map(|_| None),
        });
        let admin = admin.flatten().unwrap_or_else(|| panic!("{name} did not open its admin port"));
        let envoy = Self { process, admin, _folder: folder };
        eventually("envoy is ready", START, || {
            let ready = envoy.try_ask("/ready");
            ready.map_or_else(|e| Some(e.to_string()), |answer| (answer.status != 200).then_some(answer.body))
        });
        envoy
    }

    /// Looks at a configuration and ends.
    #[track_caller]
    pub(crate) fn validate(yaml: &str, variables: &[(&str, &str)]) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(folder.path(), yaml, variables);
        command.args(["--mode", "validate"]);
        let mut process = Process::of("envoy", command);
        let status = process.wait(START);
        Ended { status, stdout: process.stdout.whole(), stderr: process.stderr.whole() }
    }

    /// Where a listener listens, host and port, by its name.
    #[track_caller]
    pub(crate) fn address(&self, listener: &str) -> String {
        let listeners = self.ask("/listeners").body;
        let start = format!("{listener}::");
        let found = listeners.lines().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("no listener {listener} in {listeners}")).to_owned()
    }

    /// The value of a counter or gauge by its name in `/stats`; 0 while nothing has touched it.
    #[track_caller]
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let stats = self.ask("/stats").body;
        let start = format!("{name}: ");
        stats.lines().find_map(|line| line.strip_prefix(&start)).map_or(0, |value| value.parse().unwrap())
    }

    /// What its admin port answers.
    #[track_caller]
    pub(crate) fn ask(&self, path: &str) -> Answer {
        self.try_ask(path).unwrap_or_else(|error| panic!("envoy's admin port, {path}: {error}"))
    }

    fn try_ask(&self, path: &str) -> std::io::Result<Answer> {
        get(&self.admin, path)
    }
}

/// Two worker threads, since fewer would hide what threads do to each other; and none of what Envoys of one machine share.
fn command(folder: &Path, yaml: &str, variables: &[(&str, &str)]) -> Command {
    let file = folder.join("envoy.yaml");
    let admin = if yaml.contains("\nadmin:") { "" } else { ADMIN };
    fs::write(&file, format!("{yaml}\n{admin}")).unwrap();
    let mut command = Command::new(program());
    without_our_variables(&mut command).envs(variables.iter().copied());
    command.arg("-c").arg(file).args(["--concurrency", "2", "--disable-hot-restart"]);
    command
}

const ADMIN: &str = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n";

/// Where the module of the agent is, for `ENVOY_DYNAMIC_MODULES_SEARCH_PATH`: cargo builds it beside the tests.
pub(crate) fn module_folder() -> String {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("libheadworks_envoy.so").is_file(), "the module is not in {}", folder.display());
    folder.display().to_string()
}

/// `HEADWORKS_ENVOY`, else `envoy` on the PATH, else the one that `tests/run` fetched.
fn program() -> PathBuf {
    let named = std::env::var_os("HEADWORKS_ENVOY").map(PathBuf::from);
    let on_path = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|folder| folder.join("envoy")).find(|file| file.is_file())
    });
    // Beside the folder of the profile, as cargo builds it.
    let target = Path::new(env!("CARGO_BIN_EXE_headworks")).ancestors().nth(2).unwrap();
    let fetched = || Some(target.join("envoy/envoy")).filter(|file| file.is_file());
    named.or(on_path).or_else(fetched).expect(MISSING)
}
