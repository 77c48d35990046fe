//! The servers: how each is started, and asked.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use tempfile::TempDir;

use super::client::{find, http};
use super::process::{free_port, until};
use super::{Ask, Place, Process};

/// Where the programs are.
#[derive(Debug, Args)]
pub(crate) struct Programs {
    /// The program headworks
    #[arg(long, value_name = "PATH", default_value = "target/release/headworks")]
    pub(crate) headworks: OsString,
    /// The program throttlecrab-server: cargo install throttlecrab-server
    #[arg(long, value_name = "PATH", default_value = "throttlecrab-server")]
    pub(crate) throttlecrab: OsString,
    /// The program redis-server
    #[arg(long, value_name = "PATH", default_value = "redis-server")]
    pub(crate) redis: OsString,
    /// The program nginx
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    pub(crate) nginx: OsString,
}

fn arguments(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// Agents of Headworks, with all that stands above them.
pub(crate) struct Headworks {
    pub(crate) processes: Vec<Process>,
    /// Where each agent answers, over TCP and over a Unix socket.
    pub(crate) agents: Vec<(Place, Place)>,
    _directory: TempDir,
}

impl Headworks {
    /// A controller, an aggregator and so many agents, under this limit per second.
    pub(crate) fn start(programs: &Programs, agents: usize, per_second: u64) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name).display().to_string();
        fs::write(at("limits.yaml"), format!("limits: [{{name: all, rate: {per_second}/second}}]\n"))?;
        let (controller, aggregator) = (free_port()?, free_port()?);
        let mut processes = Vec::new();
        let mut start = |words: String| -> io::Result<()> {
            let install = "build it (cargo build --release), or say where it is with --headworks";
            processes.push(Process::start(&programs.headworks, &arguments(&words), install)?);
            Ok(())
        };
        let limits = at("limits.yaml");
        start(format!(
            "controller --id c --listen 127.0.0.1:{controller} --limits {limits} --admin 127.0.0.1:0"
        ))?;
        start(format!(
            "aggregator --id g --zone a --listen 127.0.0.1:{aggregator} --controllers http://127.0.0.1:{controller} --admin 127.0.0.1:0"
        ))?;
        let mut places = Vec::new();
        for agent in 0..agents {
            let (port, socket) = (free_port()?, at(&format!("{agent}.sock")));
            start(format!(
                "agent --id a{agent} --zone a --aggregators http://127.0.0.1:{aggregator} --http 127.0.0.1:{port} --http-unix {socket} --admin 127.0.0.1:0"
            ))?;
            places.push((Place::port(port), Place::Unix(PathBuf::from(socket))));
        }
        until("an agent does not answer", || {
            places.iter().all(|(tcp, unix)| tcp.answers() && unix.answers())
        })?;
        Ok(Self { processes, agents: places, _directory: directory })
    }

    /// The process of the first agent.
    pub(crate) fn agent(&self) -> &Process {
        &self.processes[2]
    }
}

/// `GET /allow`.
pub(crate) struct Allow;

impl Ask for Allow {
    fn request(&self, key: &str) -> Vec<u8> {
        format!("GET /allow?key={key} HTTP/1.1\r\nhost: agent\r\n\r\n").into_bytes()
    }

    fn answer(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        http(bytes).map(|(length, status, _)| (length, status == 200))
    }
}

/// A Redis, over TCP and over a Unix socket.
pub(crate) struct Redis {
    pub(crate) process: Process,
    pub(crate) tcp: Place,
    pub(crate) unix: Place,
    _directory: TempDir,
}

impl Redis {
    pub(crate) fn start(programs: &Programs) -> io::Result<Self> {
        let (port, directory) = (free_port()?, tempfile::tempdir()?);
        let socket = directory.path().join("redis.sock");
        let words = format!("--port {port} --bind 127.0.0.1 --unixsocket {}", socket.display());
        let mut words = arguments(&words);
        words.extend([
            "--save".to_owned(),
            String::new(),
            "--dir".to_owned(),
            directory.path().display().to_string(),
        ]);
        let process = Process::start(&programs.redis, &words, "install Debian's package redis-server")?;
        let (tcp, unix) = (Place::port(port), Place::Unix(socket));
        until("redis-server does not listen", || tcp.answers() && unix.answers())?;
        Ok(Self { process, tcp, unix, _directory: directory })
    }
}

/// Commands in the protocol of Redis.
fn commands(commands: &[&[&str]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        bytes.extend(format!("*{}\r\n", command.len()).bytes());
        for word in *command {
            bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
    }
    bytes
}

/// The number that a reply is which these bytes begin with, and its length.
fn number(bytes: &[u8]) -> Option<(usize, i64)> {
    let end = find(bytes, b"\r\n")?;
    let number = std::str::from_utf8(bytes.get(1..end)?).ok().and_then(|text| text.parse().ok());
    Some((end + 2, number.unwrap_or(i64::MAX)))
}

fn now_millis() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// The simplest limiter: INCR and EXPIRE of a key for each second, in one round trip.
pub(crate) struct Incr {
    pub(crate) per_second: i64,
}

impl Ask for Incr {
    fn request(&self, key: &str) -> Vec<u8> {
        let key = format!("{key}:{}", now_millis() / 1000);
        commands(&[&["INCR", &key], &["EXPIRE", &key, "2"]])
    }

    fn answer(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        let (first, count) = number(bytes)?;
        let (second, _) = number(&bytes[first..])?;
        Some((first + second, count <= self.per_second))
    }
}

/// A window that slides, as a script over a sorted set; its members are the milliseconds of the requests, as most that are in use have
/// it, or made unique.
pub(crate) struct SortedSet {
    pub(crate) per_second: i64,
    pub(crate) unique: bool,
}

const SCRIPT: &str = "redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1] - 1000) \
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end \
    redis.call('ZADD', KEYS[1], ARGV[1], ARGV[3]) redis.call('PEXPIRE', KEYS[1], 2000) return 1";

impl Ask for SortedSet {
    fn request(&self, key: &str) -> Vec<u8> {
        let now = now_millis().to_string();
        let member = if self.unique { fastrand::u64(..).to_string() } else { now.clone() };
        commands(&[&[
            "EVAL",
            SCRIPT,
            "1",
            &format!("z:{}:{key}", self.unique),
            &now,
            &self.per_second.to_string(),
            &member,
        ]])
    }

    fn answer(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        number(bytes).map(|(length, passes)| (length, passes == 1))
    }
}

/// throttlecrab-server over HTTP.
pub(crate) struct Throttlecrab {
    pub(crate) process: Process,
    pub(crate) tcp: Place,
}

impl Throttlecrab {
    pub(crate) fn start(programs: &Programs) -> io::Result<Self> {
        let port = free_port()?;
        let words = format!("--http --http-host 127.0.0.1 --http-port {port} --log-level error");
        let install = "cargo install throttlecrab-server, or say where it is with --throttlecrab";
        let process = Process::start(&programs.throttlecrab, &arguments(&words), install)?;
        let tcp = Place::port(port);
        until("throttlecrab-server does not listen", || tcp.answers())?;
        Ok(Self { process, tcp })
    }
}

/// The generic cell rate algorithm, by `POST /throttle`.
pub(crate) struct Throttle {
    pub(crate) per_second: i64,
    pub(crate) burst: i64,
}

impl Ask for Throttle {
    fn request(&self, key: &str) -> Vec<u8> {
        let Self { per_second, burst } = self;
        let body = format!(
            r#"{{"key":"{key}","max_burst":{burst},"count_per_period":{per_second},"period":1,"quantity":1}}"#
        );
        let head = format!(
            "POST /throttle HTTP/1.1\r\nhost: peer\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        (head + &body).into_bytes()
    }

    fn answer(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        http(bytes).map(|(length, status, body)| {
            (length, status == 200 && find(body, br#""allowed":true"#).is_some())
        })
    }
}

/// nginx with limit_req.
pub(crate) struct Nginx {
    pub(crate) process: Process,
    pub(crate) tcp: Place,
    _directory: TempDir,
}

impl Nginx {
    /// So many requests a second and key, and so many at once.
    pub(crate) fn start(programs: &Programs, per_second: i64, burst: i64) -> io::Result<Self> {
        let (port, directory) = (free_port()?, tempfile::tempdir()?);
        let configuration = directory.path().join("nginx.conf");
        fs::write(&configuration, nginx_configuration(directory.path(), port, per_second, burst))?;
        let words =
            ["-c".to_owned(), configuration.display().to_string(), "-e".to_owned(), "/dev/null".to_owned()];
        let process = Process::start(&programs.nginx, &words, "install Debian's package nginx-light")?;
        let tcp = Place::port(port);
        until("nginx does not listen", || tcp.answers())?;
        Ok(Self { process, tcp, _directory: directory })
    }
}

fn nginx_configuration(directory: &Path, port: u16, per_second: i64, burst: i64) -> String {
    let directory = directory.display();
    format!(
        "daemon off; worker_processes 1; pid {directory}/pid; error_log /dev/null crit;
        events {{ worker_connections 1024; }}
        http {{
            access_log off; keepalive_requests 1000000000; limit_req_status 429;
            client_body_temp_path {directory}/b; proxy_temp_path {directory}/p; fastcgi_temp_path {directory}/f;
            uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
            limit_req_zone $http_x_key zone=each:10m rate={per_second}r/s;
            server {{ listen 127.0.0.1:{port}; location / {{ limit_req zone=each burst={burst} nodelay; empty_gif; }} }}
        }}"
    )
}

/// A page behind limit_req.
pub(crate) struct LimitReq;

impl Ask for LimitReq {
    fn request(&self, key: &str) -> Vec<u8> {
        format!("GET / HTTP/1.1\r\nhost: peer\r\nx-key: {key}\r\n\r\n").into_bytes()
    }

    fn answer(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        http(bytes).map(|(length, status, _)| (length, status == 200))
    }
}
