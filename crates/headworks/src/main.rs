//! The `headworks` program.

mod admin;
mod bench;
mod certs;
mod cli;
mod console;
mod failure;
mod front;
mod legible;
mod limits_apply;
mod limits_check;
mod limits_diff;
mod limits_explain;
mod limits_file;
mod limits_import;
mod limits_schema;
mod load;
mod logging;
mod manual;
mod metrics;
mod patience;
mod rlqs;
mod role;
mod serve;
mod shadow_all;
mod shutdown;
mod simulate;
mod status;
mod store;
mod top;
mod traces;
mod tree;
mod trial;

use std::process::ExitCode;

use cli::{BenchCommand, CertsCommand, Cli, Command, LimitsCommand};
use failure::{Failure, USAGE};
use headworks_core::duration;

fn main() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let format = cli.log.format;
    let done = logging::start(&filter(&cli), format)
        .map_err(Failure::Usage)
        .and_then(|()| Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?))
        .and_then(|runtime| {
            let done = runtime.block_on(run(cli.command));
            // Whatever still runs has had its grace period.
            runtime.shutdown_background();
            done
        });
    done.unwrap_or_else(|failure| {
        logging::tell_failure(&failure.to_string(), format);
        failure.code()
    })
}

/// What to log. A thousand agents in one process would bury its progress; of them only what is wrong, unless asked.
fn filter(cli: &Cli) -> String {
    match cli.command {
        Command::Bench(BenchCommand::Idle(_)) => format!("headworks_agent=warn,{}", cli.log.filter),
        _ => cli.log.filter.clone(),
    }
}

async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Dev(args) => role::dev::run(args).await?,
        Command::Agent(args) => role::agent::run(*args).await?,
        Command::Aggregator(args) => role::aggregator::run(args).await?,
        Command::Controller(args) => role::controller::run(args).await?,
        Command::Certs(CertsCommand::Dev(args)) => certs::dev(&args)?,
        Command::Limits(LimitsCommand::Check(args)) => limits_check::run(&args)?,
        Command::Limits(LimitsCommand::Import(args)) => limits_import::run(&args)?,
        Command::Limits(LimitsCommand::Diff(args)) => return limits_diff::run(&args).await,
        Command::Limits(LimitsCommand::Apply(args)) => limits_apply::run(&args).await?,
        Command::Limits(LimitsCommand::Explain(args)) => limits_explain::run(&args)?,
        Command::Limits(LimitsCommand::Schema) => limits_schema::run(),
        Command::Load(args) => {
            return load::run(args).await.map_err(|error| Failure::of(&error).into_usage());
        }
        Command::Status(args) => status::run(&args).await?,
        Command::Top(args) => top::run(&args).await?,
        Command::ShadowAll(args) => shadow_all::run(&args).await?,
        Command::Trial(args) => trial::run(&args).await?,
        Command::Simulate(args) => return simulate::run(args).await,
        Command::Bench(BenchCommand::Surge(args)) => bench::surge(&args).await?,
        Command::Bench(BenchCommand::Idle(args)) => bench::idle(&args).await?,
        Command::Completions(args) => manual::completions(&args)?,
        Command::Man(args) => manual::man(&args)?,
        Command::Bench(BenchCommand::Fanin(args)) => bench::fanin(&args).await?,
        Command::Bench(BenchCommand::Tick(args)) => bench::tick(&args).await?,
        Command::Bench(BenchCommand::Children(args)) => bench::children(&args).await?,
        Command::Bench(BenchCommand::Echo(args)) => bench::echo(&args).await?,
    }
    Ok(ExitCode::SUCCESS)
}
