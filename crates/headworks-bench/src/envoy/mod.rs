//! `envoy`: what the module costs Envoy, and what asking a rate limit service does.

mod configuration;
mod fleet;
mod process;
mod wrk;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::statistics::{Summary, table};
use configuration::Way;
use fleet::Fleet;
use wrk::Turn;

/// Measure what the agent inside Envoy costs it, beside Envoy without it and Envoy asking a rate limit service.
///
/// Starts a controller, an aggregator, an agent that serves Envoy's rate limit service, and three Envoys whose configurations are the
/// same but for how they limit: not at all, by the module, or by asking that agent. Answers come from Envoy itself, so that
/// nothing else is in the figures. wrk asks one after the other, flat out; the processor time is that of Envoy's whole process. Shown
/// are medians, and the ratios of those that took turns together.
#[derive(Debug, Args)]
pub(crate) struct EnvoyArgs {
    /// Print {pairs, ways: [{name, cpu_us, per_second}], cpu_ratio, throughput_ratio} in place of a table
    #[arg(long)]
    json: bool,
    /// Where `headworks` and `libheadworks_envoy.so` are, as `cargo build --release` makes them
    #[arg(long, default_value = "target/release", value_name = "DIR")]
    programs: PathBuf,
    /// An Envoy 1.40
    #[arg(long, env = "HEADWORKS_ENVOY", default_value = "envoy", value_name = "FILE")]
    envoy: PathBuf,
    /// Turns of each
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pairs: u16,
    /// How long a turn is
    #[arg(long, default_value_t = 4, value_name = "S", value_parser = clap::value_parser!(u16).range(1..=60))]
    seconds: u16,
    /// Connections that ask at once
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
}

/// Figures as `--json` prints them.
#[derive(Serialize)]
struct Figures {
    pairs: u16,
    ways: Vec<Figure>,
    /// Envoy's processor time a request with the module, as a multiple of that without.
    cpu_ratio: f64,
    /// Requests a second with the module, as a multiple of those when Envoy asks.
    throughput_ratio: f64,
}

/// What one of them took.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    cpu_us: f64,
    per_second: f64,
}

/// Runs the command.
pub(crate) fn run(args: &EnvoyArgs) -> io::Result<()> {
    let fleet = Fleet::start(&args.programs, &args.envoy)?;
    let mut turns: [Vec<Turn>; 3] = Default::default();
    // One turn that does not count, in which connections are made and buckets become hot.
    let rounds = 1 + args.pairs;
    for round in 0..rounds {
        for (way, turns) in Way::ALL.into_iter().zip(&mut turns) {
            let turn = wrk::ask(fleet.envoy(way), args.connections, args.seconds)?;
            if round > 0 {
                turns.push(turn);
            }
        }
    }
    fleet.has_counted(wrk::requests(&turns[1..]))?;
    show(args, &turns)
}

fn show(args: &EnvoyArgs, turns: &[Vec<Turn>; 3]) -> io::Result<()> {
    let [bare, module, asking] = turns;
    let cpu_ratio = ratio(module, bare, Turn::cpu_us);
    let throughput_ratio = ratio(module, asking, |turn| turn.per_second);
    let mut out = io::stdout().lock();
    if args.json {
        let median = |turns: &[Turn], figure: fn(&Turn) -> f64| of(turns, figure).median;
        let figure = |(way, turns): (Way, &Vec<Turn>)| Figure {
            name: way.name(),
            cpu_us: median(turns, Turn::cpu_us),
            per_second: median(turns, |turn| turn.per_second).round(),
        };
        let ways = Way::ALL.into_iter().zip(turns).map(figure).collect();
        let (cpu_ratio, throughput_ratio) = (cpu_ratio.median, throughput_ratio.median);
        let figures = Figures { pairs: args.pairs, ways, cpu_ratio, throughput_ratio };
        return writeln!(out, "{}", serde_json::to_string_pretty(&figures)?);
    }
    let title = format!("{} turns of {} s", args.pairs, args.seconds);
    let head = [title, "µs of Envoy".into(), "min–max".into(), "a second".into(), "min–max".into()];
    let row = |(way, turns): (Way, &Vec<Turn>)| {
        let (cpu, rate) = (of(turns, Turn::cpu_us), of(turns, |turn| turn.per_second));
        [
            format!("  {}", way.name()),
            format!("{:.1}", cpu.median),
            format!("{:.1}–{:.1}", cpu.least, cpu.greatest),
            format!("{:.0}", rate.median),
            format!("{:.0}–{:.0}", rate.least, rate.greatest),
        ]
    };
    let rows: Vec<_> = [head].into_iter().chain(Way::ALL.into_iter().zip(turns).map(row)).collect();
    table(&mut out, &rows)?;
    told(&mut out, "Envoy's processor time a request with the module ÷ without", cpu_ratio)?;
    told(&mut out, "requests a second with the module ÷ asking a rate limit service", throughput_ratio)
}

fn told(out: &mut impl Write, what: &str, Summary { median, least, greatest }: Summary) -> io::Result<()> {
    writeln!(out, "{what}: {median:.2} ({least:.2}–{greatest:.2})")
}

fn of(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> Summary {
    Summary::of(&turns.iter().map(figure).collect::<Vec<_>>())
}

/// One as a multiple of the other, in turns that came together.
fn ratio(one: &[Turn], other: &[Turn], figure: impl Fn(&Turn) -> f64) -> Summary {
    Summary::of(&one.iter().zip(other).map(|(one, other)| figure(one) / figure(other)).collect::<Vec<_>>())
}
