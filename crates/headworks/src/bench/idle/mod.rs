//! `headworks bench idle`: what a fleet at rest costs its parents.

mod args;
mod crowd;
mod report;
mod usage;

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::folder::Folder;
use super::parents::{Parents, until_it_stands};
use super::tell;
use crate::failure::Failure;
use crate::shutdown;
use crowd::Crowd;
use report::{Cost, Report};
use usage::Usage;

pub(crate) use args::IdleArgs;

/// How progress begins.
const TITLE: &str = "bench idle";
/// The one zone.
const ZONE: &str = "a";
/// The least time between two reports, as controllers have it by default.
const SPACING: &str = "50ms";
/// How long the fleet rests before anything is measured.
const REST: Duration = Duration::from_secs(12);
/// Open files that a process needs besides those for agents: its listeners, logs, and what the runtime has.
const OTHER_FILES: u64 = 64;
/// One limit for all, one for each caller.
const LIMITS: &str = "limits:\n  - name: api\n    rate: 1000000/second\n  - name: per-caller\n    per: [caller]\n    rate: 10000/second\n";

/// Runs `bench idle`.
pub(crate) async fn idle(args: &IdleArgs) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::Failed("bench idle reads /proc as Linux has it: run it on Linux".to_owned()));
    }
    check_open_files(args.agents, usage::most_open_files()?)?;
    let stop = shutdown::on_signal()?;
    // Dropping what runs ends its agents, kills its processes and removes its folder.
    let measured = stop.run_until_cancelled(measure(args)).await;
    let report =
        measured.ok_or_else(|| Failure::Failed("interrupted before the figures were taken".to_owned()))??;
    // A reader that has gone away wants no report, and is no failure.
    let _ = writeln!(io::stdout(), "{}", if args.json { report.to_json() } else { report.to_string() });
    Ok(())
}

/// An error if agents need more open files than a process may have; nothing is raised unasked.
fn check_open_files(agents: u32, most: Option<u64>) -> Result<(), Failure> {
    let needed = u64::from(agents) + OTHER_FILES;
    match most {
        Some(most) if most < needed => Err(Failure::Failed(format!(
            "{agents} agents need {needed} open files in a process, and this shell allows {most}: \
             run `ulimit -n {needed}` first, or give fewer --agents"
        ))),
        _ => Ok(()),
    }
}

async fn measure(args: &IdleArgs) -> Result<Report, Failure> {
    let folder = Folder::new()?;
    tell(TITLE, &format!("starting a fleet of {} agents in {}", args.agents, folder.path().display()));
    let mut parents = Parents::start(folder, LIMITS, SPACING, &[ZONE]).await?;
    // Declared after its parents, and so dropped before them: agents that leave do not complain of parents that have.
    let crowd = Crowd::start(args.agents, ZONE, &parents.aggregators[0].url);
    until_it_stands(async || stands(&mut parents, &crowd).await).await?;
    crowd.ask();
    tell(TITLE, &format!("all agents are attached; resting for {REST:?}"));
    sleep(REST).await;
    tell(TITLE, &format!("measuring for {:?}", args.duration));
    let (before, start) = (usages(&parents)?, Instant::now());
    sleep(args.duration).await;
    let (after, time) = (usages(&parents)?, start.elapsed());
    if !stands(&mut parents, &crowd).await? {
        return Err(Failure::Failed(format!(
            "only {} of {} agents had a fresh plan in the end: this machine cannot bear so many, give fewer --agents",
            crowd.fresh(),
            crowd.len()
        )));
    }
    let [aggregator, controller] = [0, 1].map(|place| Cost::of(before[place], after[place], time));
    Ok(Report { agents: crowd.len(), duration_s: time.as_secs_f64(), aggregator, controller })
}

/// Whether both parents hear all agents, and all have fresh plans.
async fn stands(parents: &mut Parents, crowd: &Crowd) -> Result<bool, Failure> {
    parents.live()?;
    Ok(crowd.fresh() == crowd.len()
        && parents.aggregators[0].hears(crowd.len()).await
        && parents.controller.hears(crowd.len()).await)
}

/// What aggregator and controller have used.
fn usages(parents: &Parents) -> Result<[Usage; 2], Failure> {
    Ok([Usage::of(parents.aggregators[0].node.pid())?, Usage::of(parents.controller.node.pid())?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_are_named_with_what_to_do() {
        let error = check_open_files(1000, Some(1063)).unwrap_err().to_string();
        assert!(error.contains("allows 1063") && error.contains("ulimit -n 1064"), "{error}");
        assert!(check_open_files(1000, Some(1064)).is_ok() && check_open_files(1000, None).is_ok());
    }

    #[test]
    fn its_limits_are_sound() {
        assert_eq!(headworks_core::limits::parse(LIMITS).map_or(0, |limits| limits.limits().len()), 2);
    }
}
