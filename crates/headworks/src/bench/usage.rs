//! What processes use, as Linux tells it under /proc.

use std::fs;
use std::time::Duration;

use crate::failure::Failure;

/// The part of a second in which /proc counts processor time: the same on every machine that Rust's standard library
/// runs on, whatever its kernel counts in.
const TICKS: u64 = 100;
/// Open files that a process needs besides those for agents: its listeners, logs, and what the runtime has.
const OTHER_FILES: u64 = 64;

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

/// Processor time of the thread of this name since its start.
pub(super) fn of_thread(pid: u32, name: &str) -> Result<Duration, Failure> {
    let tasks = format!("/proc/{pid}/task");
    let listed = fs::read_dir(&tasks).map_err(|error| unreadable(&tasks, &error))?;
    let stats = listed.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let found = stats.filter(|stat| stat.contains(&format!("({name})"))).find_map(|stat| processor(&stat));
    found.ok_or_else(|| Failure::Failed(format!("process {pid} has no thread of the name {name:?}")))
}

/// An error if agents need more open files than a process may have; nothing is raised unasked.
pub(super) fn check_open_files(agents: u32) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::Failed("this bench reads /proc as Linux has it: run it on Linux".to_owned()));
    }
    enough_open_files(agents, most_open_files()?)
}

fn enough_open_files(agents: u32, most: Option<u64>) -> Result<(), Failure> {
    let needed = u64::from(agents) + OTHER_FILES;
    match most {
        Some(most) if most < needed => Err(Failure::Failed(format!(
            "{agents} agents need {needed} open files in a process, and this shell allows {most}: \
             run `ulimit -n {needed}` first, or give fewer --agents"
        ))),
        _ => Ok(()),
    }
}

/// How many files a process may have open, for this one and its children; `None` without a bound.
fn most_open_files() -> Result<Option<u64>, Failure> {
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
    fn too_few_open_files_are_named_with_what_to_do() {
        let error = enough_open_files(1000, Some(1063)).unwrap_err().to_string();
        assert!(error.contains("allows 1063") && error.contains("ulimit -n 1064"), "{error}");
        assert!(enough_open_files(1000, Some(1064)).is_ok() && enough_open_files(1000, None).is_ok());
    }

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
