//! `headworks bench idle`: what a fleet at rest costs its parents.

mod args;
mod crowd;
mod report;

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::folder::Folder;
use super::parents::{Parents, until_it_stands};
use super::tell;
use super::usage::{self, Usage};
use crate::failure::Failure;
use crate::shutdown;
use crowd::Crowd;
use report::{Cost, Report};

pub(crate) use args::IdleArgs;

/// How progress begins.
const TITLE: &str = "bench idle";
/// The one zone.
const ZONE: &str = "a";
/// The least time between two reports, as controllers have it by default.
const SPACING: &str = "50ms";
/// How long the fleet rests before anything is measured.
const REST: Duration = Duration::from_secs(12);
/// One limit for all, one for each caller.
const LIMITS: &str = "limits:\n  - name: api\n    rate: 1000000/second\n  - name: per-caller\n    per: [caller]\n    rate: 10000/second\n";

/// Runs `bench idle`.
pub(crate) async fn idle(args: &IdleArgs) -> Result<(), Failure> {
    usage::check_open_files(args.agents)?;
    let stop = shutdown::on_signal()?;
    // Dropping what runs ends its agents, kills its processes and removes its folder.
    let measured = stop.run_until_cancelled(measure(args)).await;
    let report =
        measured.ok_or_else(|| Failure::Failed("interrupted before the figures were taken".to_owned()))??;
    // A reader that has gone away wants no report, and is no failure.
    let _ = writeln!(io::stdout(), "{}", if args.json { report.to_json() } else { report.to_string() });
    Ok(())
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
    fn its_limits_are_sound() {
        assert_eq!(headworks_core::limits::parse(LIMITS).map_or(0, |limits| limits.limits().len()), 2);
    }
}
