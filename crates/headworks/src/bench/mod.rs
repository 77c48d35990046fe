//! `headworks bench`: measures fleets of real processes. `surge`: how one takes a step in demand; `idle`: what it costs
//! at rest; `fanin` and `tick`: what reports cost an aggregator and a controller.

mod args;
mod children;
mod configuration;
mod cost;
mod drive;
mod echo;
mod fanin;
mod fleet;
mod folder;
mod generator;
mod idle;
mod measure;
mod node;
mod parents;
mod report;
mod tick;
mod usage;

use std::io::{self, Write as _};
use std::time::Duration;

use configuration::{CONFIGURATIONS, Configuration};
use measure::Figures;
use report::Report;

use crate::duration;
use crate::failure::Failure;
use crate::shutdown;

pub(crate) use args::SurgeArgs;
pub(crate) use children::{ChildrenArgs, children};
pub(crate) use echo::{EchoArgs, echo};
pub(crate) use fanin::{FaninArgs, fanin};
pub(crate) use idle::{IdleArgs, idle};
pub(crate) use tick::{TickArgs, tick};

/// Processor time is told in hundredths of a second: shorter, it would be told too roughly.
fn span(text: &str) -> Result<Duration, String> {
    let span = duration::parse(text)?;
    let is_sound = (Duration::from_secs(1)..=Duration::from_secs(60 * 60)).contains(&span);
    is_sound.then_some(span).ok_or_else(|| "write a time from 1s to 1h, such as 20s".to_owned())
}

/// One line of progress; nobody may be there to read it.
fn tell(title: &str, what: &str) {
    let _ = writeln!(io::stderr(), "{title}: {what}");
}

/// Runs `bench surge`. The configurations take turns, so that what else the machine does meets both alike.
pub(crate) async fn surge(args: &SurgeArgs) -> Result<(), Failure> {
    args.check()?;
    let stop = shutdown::on_signal()?;
    let mut report = Report::new(args);
    // Dropping what runs kills its processes and removes its folder.
    if let Some(done) = stop.run_until_cancelled(run_all(args, &mut report)).await {
        done?;
    }
    if report.is_empty() {
        return Err(Failure::Failed("interrupted before the first run was over".to_owned()));
    }
    // A reader that has gone away wants no report, and is no failure.
    let _ = writeln!(io::stdout(), "{}", if args.json { report.to_json() } else { report.to_string() });
    Ok(())
}

async fn run_all(args: &SurgeArgs, report: &mut Report) -> Result<(), Failure> {
    for run in 1..=args.runs {
        for (place, configuration) in CONFIGURATIONS.iter().enumerate() {
            let figures = one(args, configuration, run).await?;
            report.add(place, figures);
        }
    }
    Ok(())
}

/// Both configurations of a run are asked at the same times.
async fn one(args: &SurgeArgs, configuration: &Configuration, run: u32) -> Result<Figures, Failure> {
    let title = format!("run {run} of {}, {}", args.runs, configuration.name);
    let figures = drive::run(args, configuration, u64::from(run), &title).await?;
    tell(&title, &report::line(&figures));
    Ok(figures)
}
