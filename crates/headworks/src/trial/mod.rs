//! `headworks trial`: what a limit did in the last 24 hours, or would have done.

mod args;
mod table;
mod time;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::admin::{Question, Trial, read};
use crate::failure::Failure;

pub(crate) use args::TrialArgs;

/// Runs the command.
pub(crate) async fn run(args: &TrialArgs) -> Result<(), Failure> {
    let admin = &args.admin;
    let path = format!("/trial?limit={}", utf8_percent_encode(&args.limit, NON_ALPHANUMERIC));
    let answer = args.client.client()?.ask(admin, Question::get(path)).await?;
    let trial: Trial = read(admin, &answer, "is no trial")?;
    if args.json {
        println!("{}", String::from_utf8_lossy(&answer));
    } else {
        print!("{}", table::render(&trial));
    }
    Ok(())
}
