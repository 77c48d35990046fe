//! A real Redis, which can be killed and started again on its port.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::wait::eventually;

/// A Redis of its own for a test.
pub(crate) struct Redis {
    port: u16,
    args: Vec<String>,
    child: Child,
    directory: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With these settings beside the usual ones.
    pub(crate) fn with(args: &[&str]) -> Self {
        let port = free_port();
        let directory = tempfile::tempdir().unwrap();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let child = launch(port, &args, &directory);
        let redis = Self { port, args, child, directory };
        redis.await_answers();
        redis
    }

    /// A node of a cluster, without slots as yet.
    pub(crate) fn cluster_node() -> Self {
        // Its port for other nodes is above the last one where it is not told.
        Self::with(&["--cluster-enabled", "yes", "--cluster-port", &free_port().to_string()])
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, empty, on the port it had.
    pub(crate) fn restart(&mut self) {
        self.child = launch(self.port, &self.args, &self.directory);
        self.await_answers();
    }

    /// Sends a signal by its name, such as `STOP`.
    pub(crate) fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// What it answers to a command without spaces in its words.
    #[track_caller]
    pub(crate) fn ask(&self, command: &str) -> String {
        self.try_ask(command).unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.ask("KEYS *").lines().map(str::to_owned).collect()
    }

    /// How many times a command was called.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let stats = self.ask("INFO commandstats");
        let start = format!("cmdstat_{command}:calls=");
        let calls = stats.lines().find_map(|line| line.strip_prefix(&start));
        calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
    }

    fn await_answers(&self) {
        eventually("redis answers", Duration::from_secs(10), || {
            let error = self.try_ask("PING").err().map(|error| error.to_string());
            error.filter(|error| !error.contains("NOAUTH"))
        });
    }

    fn try_ask(&self, command: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        reply(&mut BufReader::new(stream))
    }
}

/// Redis cannot take any free port by itself.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(port: u16, args: &[String], directory: &TempDir) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]).args(args);
    command.current_dir(directory.path()).stdout(Stdio::null());
    command.spawn().expect("redis-server is missing: install Debian's package redis-server")
}

/// A reply as text, a list with one entry on each line.
fn reply(stream: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line.trim_end();
    let number = || line[1..].parse::<usize>().unwrap_or(0);
    match line.as_bytes().first() {
        Some(b'$') if line != "$-1" => {
            let mut bytes = vec![0; number() + 2];
            stream.read_exact(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes[..number()]).into_owned())
        }
        Some(b'*') => {
            let entries: std::io::Result<Vec<String>> = (0..number()).map(|_| reply(stream)).collect();
            Ok(entries?.join("\n"))
        }
        Some(b'+' | b':') => Ok(line[1..].to_owned()),
        _ => Err(std::io::Error::other(line.to_owned())),
    }
}
