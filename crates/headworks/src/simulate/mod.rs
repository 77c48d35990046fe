//! `headworks simulate`: scenarios on a simulated fleet.

mod args;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs};

use headworks_sim::{LANGUAGE, Outcome, Script, catalogue, parse_with_seed};

pub(crate) use args::SimulateArgs;

use crate::failure::Failure;

/// Rows of a chart in the terminal; its width is the terminal's.
const ROWS: usize = 24;
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=160;

/// Runs the command, off the threads that serve: a scenario computes for seconds.
pub(crate) async fn run(args: SimulateArgs) -> Result<ExitCode, Failure> {
    let done = tokio::task::spawn_blocking(move || run_here(&args));
    done.await.map_err(|error| Failure::of(&error))?
}

fn run_here(args: &SimulateArgs) -> Result<ExitCode, Failure> {
    if args.svg.is_some() && args.scenarios.len() != 1 {
        return Err(Failure::Usage("--svg takes one scenario: name it".to_owned()));
    }
    if args.language {
        say(LANGUAGE);
    } else if args.scenarios.is_empty() {
        list();
    }
    let mut as_expected = true;
    for name in &args.scenarios {
        let text = read(name)?;
        if args.show {
            say(&text);
            continue;
        }
        let script =
            parse_with_seed(&text, args.seed).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
        if args.show_faults {
            say(&script.faults());
            continue;
        }
        as_expected &= simulate(name, script, args)?;
    }
    Ok(if as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list() {
    for (name, script) in catalogue::SCENARIOS {
        say(&format!("{name:<34} {}\n", catalogue::title(script)));
    }
}

/// A name of ours, or a file.
fn read(name: &str) -> Result<String, Failure> {
    if let Some(script) = catalogue::scenario(name) {
        return Ok(script.to_owned());
    }
    fs::read_to_string(name).map_err(|error| {
        let hint = "`headworks simulate` lists the scenarios that come with the program";
        Failure::Usage(format!("{name} is neither a scenario nor a file that can be read ({error}): {hint}"))
    })
}

fn simulate(name: &str, script: Script, args: &SimulateArgs) -> Result<bool, Failure> {
    let tells = io::stderr().is_terminal();
    let outcome = headworks_sim::run(&Arc::new(script), |part| {
        if tells {
            eprint!("\r{name}: {:3.0} % ", part * 100.0);
        }
    });
    if tells {
        eprint!("\r\x1b[K");
    }
    say(&outcome.transcript);
    if !args.no_chart
        && let Some(picture) = &outcome.picture
    {
        say(&picture.chart().to_text(width(), ROWS));
    }
    if let Some(path) = &args.svg {
        draw(&outcome, path)?;
    }
    Ok(outcome.as_expected)
}

fn draw(outcome: &Outcome, path: &Path) -> Result<(), Failure> {
    let Some(picture) = &outcome.picture else {
        return Err(Failure::Usage("nothing to draw: add a line `chart LIMIT from TIME to TIME`".to_owned()));
    };
    fs::write(path, picture.chart().to_svg())
        .map_err(|error| Failure::Failed(format!("could not write {}: {error}", path.display())))
}

/// A reader that has gone away wants no more, and is no failure.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// Shells tell programs the width of the terminal rarely; 100 fits most.
fn width() -> usize {
    let told = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.unwrap_or(100_usize).clamp(*WIDTHS.start(), *WIDTHS.end())
}
