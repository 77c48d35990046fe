//! What processes use, as Linux tells it under /proc.

use std::fs;
use std::time::Duration;

use crate::failure::Failure;

/// The part of a second in which /proc counts processor time: the same on every machine that Rust's standard library
/// runs on, whatever its kernel counts in.
const TICKS: u64 = 100;

/// What a process has used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Usage {
    /// Processor time since its start, of all its threads, in user and kernel mode.
    pub(super) processor: Duration,
    /// Memory that is resident now, in bytes.
    pub(super) resident: u64,
}

impl Usage {
    /// That of a running process.
    pub(super) fn of(pid: u32) -> Result<Self, Failure> {
        let (stat, status) = (read(pid, "stat")?, read(pid, "status")?);
        let usage = processor(&stat).zip(resident(&status));
        let (processor, resident) = usage.ok_or_else(|| {
            Failure::Failed(format!("/proc/{pid} does not tell what the process uses, as that of Linux does"))
        })?;
        Ok(Self { processor, resident })
    }
}

/// How many files a process may have open, for this one and its children; `None` without a bound.
pub(super) fn most_open_files() -> Result<Option<u64>, Failure> {
    let limits =
        fs::read_to_string("/proc/self/limits").map_err(|error| unreadable("/proc/self/limits", &error))?;
    Ok(open_files(&limits))
}

fn read(pid: u32, file: &str) -> Result<String, Failure> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))
}

fn unreadable(path: &str, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot read {path}: {error}; this command needs the /proc of Linux"))
}

/// The name, in brackets, may hold anything; the times are the 12th and 13th word after it.
fn processor(stat: &str) -> Option<Duration> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut words = after.split_whitespace().skip(11).map(|word| word.parse::<u64>().ok());
    let ticks = words.next()?? + words.next()??;
    Some(Duration::from_millis(ticks * 1000 / TICKS))
}

fn resident(status: &str) -> Option<u64> {
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kilobytes.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The soft limit stands before the hard one.
fn open_files(limits: &str) -> Option<u64> {
    let bounds = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    bounds.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_time_of_user_and_kernel_whatever_the_name_is() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194304 900 0 0 0 123 45 7 7 20 0 4 0 100 1 2 3\n";
        assert_eq!(processor(stat), Some(Duration::from_millis(1680)));
        assert_eq!(processor("42 (short) S 1"), None);
    }

    #[test]
    fn reads_memory_and_bounds() {
        assert_eq!(resident("VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n"), Some(204_800));
        let limits = "Max processes             100          200          processes\n\
                      Max open files            1024         524288       files\n";
        assert_eq!(open_files(limits), Some(1024));
        assert_eq!(open_files("Max open files            unlimited    unlimited    files\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn knows_what_this_process_uses() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 100_000, "{usage:?}");
        assert!(most_open_files().is_ok());
    }
}
