//! `headworks limits diff`: what limits files would change on a running controller.

mod args;
mod report;
mod table;

use std::process::ExitCode;

use crate::admin::{Question, Running, read};
use crate::failure::Failure;
use crate::limits_file;

pub(crate) use args::DiffArgs;
use report::Report;

/// As diff(1) has it: there is a difference.
const DIFFERS: u8 = 1;
/// And there was trouble.
const TROUBLE: u8 = 2;

/// Runs the command.
pub(crate) async fn run(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let new = limits_file::read_all(&args.paths)?.load()?;
    let report = match ask(args).await.and_then(|running| Report::of(&args.admin, running, &new)) {
        Ok(report) => report,
        Err(failure) => {
            eprintln!("headworks: {}", failure.unless_usage()?);
            return Ok(ExitCode::from(TROUBLE));
        }
    };
    if args.json {
        println!("{}", serde_json::to_string(&report).map_err(|error| Failure::of(&error))?);
    } else {
        print!("{}", table::render(&report));
    }
    Ok(if report.limits.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) })
}

async fn ask(args: &DiffArgs) -> Result<Running, Failure> {
    let admin = &args.admin;
    let answer = args.client.client()?.ask(admin, Question::get("/limits")).await?;
    read(admin, &answer, "are no limits")
}
