//! wrk, which asks flat out.

use std::io;
use std::process::Command;
use std::time::Duration;

use super::process::Process;

/// What came of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    requests: u64,
    /// Requests a second.
    pub(super) per_second: f64,
    /// What Envoy used of the processor.
    cpu: Duration,
}

impl Turn {
    /// Microseconds of Envoy's processor time a request.
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.requests as f64
    }
}

/// All requests of these turns.
pub(super) fn requests(turns: &[Vec<Turn>]) -> u64 {
    turns.iter().flatten().map(|turn| turn.requests).sum()
}

/// Asks an Envoy for so many seconds.
pub(super) fn ask((port, envoy): (u16, &Process), connections: u16, seconds: u16) -> io::Result<Turn> {
    let before = envoy.cpu()?;
    let mut command = Command::new("wrk");
    command.args([
        "--threads",
        "1",
        "--connections",
        &connections.to_string(),
        "--duration",
        &format!("{seconds}s"),
    ]);
    command.args(["--header", "x-caller: web", &format!("http://127.0.0.1:{port}/")]);
    let told = command.output().map_err(|error| {
        io::Error::new(error.kind(), format!("wrk cannot be started ({error}): install Debian's package wrk"))
    })?;
    let cpu = envoy.cpu()?.saturating_sub(before);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let (requests, per_second) = read(&told)?;
    Ok(Turn { requests, per_second, cpu })
}

/// Requests, and requests a second. None of them may have failed.
fn read(told: &str) -> io::Result<(u64, f64)> {
    let unclear = || io::Error::other(format!("wrk says what was not expected:\n{told}"));
    if told.contains("Non-2xx") || told.contains("Socket errors") {
        return Err(io::Error::other(format!("requests failed:\n{told}")));
    }
    let requests = told.lines().find_map(|line| line.trim().split_once(" requests in "));
    let rate = told.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    let (requests, rate) = requests
        .map(|(requests, _)| requests.parse())
        .zip(rate.map(|rate| rate.trim().parse()))
        .ok_or_else(unclear)?;
    Ok((requests.map_err(|_| unclear())?, rate.map_err(|_| unclear())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "Running 4s test @ http://127.0.0.1:1/\n  1 threads and 32 connections\n  \
        123456 requests in 4.00s, 10.00MB read\nRequests/sec:  30864.00\nTransfer/sec:      2.50MB\n";

    #[test]
    fn takes_what_wrk_tells_and_no_failures() {
        assert_eq!(read(TOLD).expect("it is what wrk tells"), (123_456, 30_864.0));
        assert!(read(&format!("{TOLD}  Non-2xx or 3xx responses: 1\n")).is_err());
        assert!(read("").is_err());
    }
}
