//! What a process uses of the processor.

use std::fs;
use std::io;
use std::time::Duration;

/// The part of a second in which /proc counts processor time: the same on every machine that Rust's standard library
/// runs on, whatever its kernel counts in.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of all threads of a process since it was started, its own and in the system for it.
pub(crate) fn time_of(process: u32) -> io::Result<Duration> {
    let path = format!("/proc/{process}/stat");
    time_in(&fs::read_to_string(&path)?).ok_or_else(|| {
        io::Error::other(format!("{path} does not tell what the process uses, as that of Linux does"))
    })
}

/// The name, in brackets, may hold anything; the times are the 12th and 13th word after it.
fn time_in(stat: &str) -> Option<Duration> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut words = after.split_whitespace().skip(11).map(|word| word.parse::<u32>().ok());
    Some(TICK * (words.next()?? + words.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_user_and_kernel_whatever_the_name_is() {
        let stat = "17 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1";
        assert_eq!(time_in(stat), Some(Duration::from_secs(3)));
        assert_eq!(time_in("17 (a"), None);
    }
}
