//! An agent without a control plane: its limits come from a file of its own, and must be exact.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use headworks_core::limits::{LimitSet, Mode};
use tokio::sync::watch;

use super::ports::Ports;
use crate::failure::Failure;
use crate::limits_file::{self, Content, News};

/// The limits of a standalone agent, followed while it runs.
pub(super) struct OwnLimits {
    path: PathBuf,
    content: Content,
    in_force: watch::Sender<(u64, Arc<LimitSet>)>,
    load_errors: Arc<AtomicU64>,
}

impl OwnLimits {
    /// Reads the limits for the first time.
    pub(super) fn load(path: PathBuf) -> Result<Self, Failure> {
        let content = limits_file::read(&path)?;
        let limits = content.parse()?;
        check(&limits).map_err(Failure::Usage)?;
        let in_force = watch::Sender::new((1, Arc::new(limits)));
        Ok(Self { path, content, in_force, load_errors: Arc::default() })
    }

    /// Where the agent hears of them.
    pub(super) fn in_force(&self) -> watch::Receiver<(u64, Arc<LimitSet>)> {
        self.in_force.subscribe()
    }

    /// Times that they could not be loaded.
    pub(super) fn load_errors(&self) -> Arc<AtomicU64> {
        self.load_errors.clone()
    }

    /// Follows the file: what is good comes into force, what is bad changes nothing but a counter.
    pub(super) fn follow(self, ports: &Ports) {
        let Self { path, content, in_force, load_errors } = self;
        ports.spawn(limits_file::watch(path, content, ports.closing(), async move |news| {
            let checked = match news {
                News::Changed(loaded) => check(&loaded.limits).map(|()| loaded.limits),
                News::Back => return,
                News::Refused(error) => Err(error.to_string()),
            };
            match checked {
                Ok(limits) => {
                    in_force.send_modify(|(generation, old)| (*generation, *old) = (*generation + 1, limits));
                }
                Err(error) => limits_file::refuse(&error, &load_errors),
            }
        }));
    }
}

/// A limit that drops by ratio would let everything pass: nobody computes its ratio.
fn check(limits: &LimitSet) -> Result<(), String> {
    let by_ratio = limits.limits().iter().filter(|limit| limit.exact().is_none() && limit.mode != Mode::Off);
    let faults: Vec<String> = by_ratio
        .map(|limit| {
            format!(
                "{} drops by a ratio that a controller computes, and a standalone agent has none: add `enforcement: exact` \
                 to it, or run without --standalone",
                limit.name
            )
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use headworks_core::limits::parse;

    use super::*;

    #[test]
    fn a_limit_that_nobody_would_hold_is_refused_by_name() {
        let limits = |text| parse(text).unwrap();
        assert_eq!(check(&limits("limits: [{name: t, rate: 3/minute, enforcement: exact}]")), Ok(()));
        assert_eq!(check(&limits("limits: [{name: t, rate: 3/minute, mode: off}]")), Ok(()));
        let fault = check(&limits("limits: [{name: t, rate: 3/minute}]")).unwrap_err();
        assert!(fault.starts_with("t drops by a ratio") && fault.contains("enforcement: exact"), "{fault}");
    }
}
