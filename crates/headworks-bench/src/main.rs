//! Measures Headworks against other rate limiters, side by side on one machine.
//!
//! Competitors take turns in one process, so that what else the machine does meets all of them alike.

mod accuracy;
mod decide;
mod envoy;
mod limiter;
mod memory;
mod peers;
mod processor;
mod rls;
mod serve;
mod stalls;
mod statistics;
mod store;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measure Headworks against other rate limiters, side by side on this machine.
#[derive(Debug, Parser)]
#[command(name = "headworks-bench", version, max_term_width = 100)]
#[command(after_help = "Build it in release mode, and leave the machine alone while it runs.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    // Its help is that of its flags: a doc comment here would take its place.
    Decide(decide::DecideArgs),
    Envoy(envoy::EnvoyArgs),
    Serve(serve::ServeArgs),
    Accuracy(accuracy::AccuracyArgs),
    Memory(memory::MemoryArgs),
    Rls(rls::RlsArgs),
    Stalls(stalls::StallsArgs),
    Store(store::StoreArgs),
}

fn main() -> ExitCode {
    let ran = match Cli::parse().command {
        Command::Decide(args) => decide::run(&args),
        Command::Envoy(args) => envoy::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Accuracy(args) => accuracy::run(&args),
        Command::Memory(args) => memory::run(&args),
        Command::Rls(args) => rls::run(&args),
        Command::Stalls(args) => stalls::run(&args),
        Command::Store(args) => store::run(&args),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
