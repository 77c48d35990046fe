//! How a node notices that it was suspended: by a lid, a hypervisor, a signal or a debugger. Its clock went on, and
//! nothing else of it did.

use std::time::Duration;

use crate::units::Moment;

/// A node looks at its clock many times in this time; one that did not was suspended.
const PAUSE: Duration = Duration::from_secs(2);

/// When the node last looked at its clock.
#[derive(Clone, Copy, Debug)]
pub struct Awake(Moment);

impl Awake {
    /// Awake from now on.
    pub fn since(now: Moment) -> Self {
        Self(now)
    }

    /// Awake now; for how long the node was suspended before, if it was.
    pub fn wake(&mut self, now: Moment) -> Option<Duration> {
        let lasted = now.since(std::mem::replace(&mut self.0, now));
        (lasted >= PAUSE).then_some(lasted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_time_is_noticed_once() {
        let at = |millis| Moment::after(Duration::from_millis(millis));
        let mut awake = Awake::since(at(100));
        assert_eq!([150, 1150, 1200].map(|millis| awake.wake(at(millis))), [None; 3]);
        assert_eq!(awake.wake(at(31_200)), Some(Duration::from_secs(30)));
        assert_eq!(awake.wake(at(31_250)), None);
    }
}
