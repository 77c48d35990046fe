//! Proxies beside Envoy, by the configurations that ship, and a service for them to stand in front of.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::http::{Answer, get, send};
use super::process::Process;
use super::redis::free_port;
use super::wait::eventually;

/// A service that answers every request with `page`, and counts.
pub(crate) struct Page {
    pub(crate) address: String,
    asked: Arc<AtomicU64>,
}

impl Page {
    /// Serves until the tests end.
    pub(crate) fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<AtomicU64> = Arc::default();
        let counted = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = counted.clone();
                thread::spawn(move || answer(&stream, &counted));
            }
        });
        Self { address, asked }
    }

    /// Requests that got here.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// The port that it is on.
    pub(crate) fn port(&self) -> &str {
        port(&self.address)
    }
}

/// Answers one request after the other, none of which has a body.
fn answer(stream: &TcpStream, asked: &AtomicU64) {
    let mut lines = BufReader::new(stream).lines();
    while lines.by_ref().take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).count() > 0 {
        asked.fetch_add(1, Relaxed);
        let mut stream = stream;
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage").is_err() {
            return;
        }
    }
}

/// The port of an address.
pub(crate) fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

/// A configuration that ships, with other ports than it tells of.
#[track_caller]
pub(crate) fn shipped(path: &str, ports: &[(&str, &str)]) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/").to_owned() + path;
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    ports.iter().fold(text, |text, (told, taken)| {
        assert!(text.contains(told), "{path} does not tell of {told}");
        text.replace(told, taken)
    })
}

/// An nginx or a Caddy.
pub(crate) struct Proxy {
    address: String,
    _process: Process,
    _folder: TempDir,
}

impl Proxy {
    /// nginx, in front of this service, with an agent that answers /allow here.
    #[track_caller]
    pub(crate) fn nginx(page: &Page, agent: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        // As any user, with everything that it writes in a folder of its own.
        let own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("{what}_temp_path {at}/{what};"))
            .concat();
        let http = format!("http {{\n    access_log off;\n    {own}");
        Self::launch("nginx", "nginx/nginx.conf", page, agent, folder, |command, file, text| {
            let text = text.replacen("http {", &http, 1);
            fs::write(file, format!("pid {file}.pid;\n{text}")).unwrap();
            command.args(["-c", file, "-e", "stderr", "-g", "daemon off;"]);
        })
    }

    /// Caddy, in the same place.
    #[track_caller]
    pub(crate) fn caddy(page: &Page, agent: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::launch("caddy", "caddy/Caddyfile", page, agent, folder, |command, file, text| {
            fs::write(file, text).unwrap();
            command.args(["run", "--adapter", "caddyfile", "--config", file]);
        })
    }

    fn launch(
        program: &str,
        config: &str,
        page: &Page,
        agent: &str,
        folder: TempDir,
        prepare: impl FnOnce(&mut Command, &str, &str),
    ) -> Self {
        let port = free_port();
        let (address, taken) = (format!("127.0.0.1:{port}"), format!(":{port}"));
        let text = shipped(
            config,
            &[(":10000", &taken), ("127.0.0.1:8100", agent), ("127.0.0.1:8080", &page.address)],
        );
        // On a machine that does much else, an agent that is there may be late.
        let text = text.replace("100ms", "5s").replace("250ms", "5s");
        let file = folder.path().join("config").display().to_string();
        let mut command = Command::new(program);
        command.env("HOME", folder.path()).current_dir(folder.path());
        prepare(&mut command, &file, &text);
        let process = Process::of(program, command);
        let proxy = Self { address, _process: process, _folder: folder };
        eventually(&format!("{program} listens"), Duration::from_secs(15), || {
            TcpStream::connect(&proxy.address).err().map(|error| error.to_string())
        });
        proxy
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        get(&self.address, path).unwrap()
    }

    /// Asks with these lines in the head.
    #[track_caller]
    pub(crate) fn get_with(&self, path: &str, head: &[&str]) -> Answer {
        send(&self.address, &format!("GET {path}"), head, "").unwrap()
    }
}
