//! `rls`: how many requests a second an agent answers over gRPC, beside the gRPC server of throttlecrab.

mod client;
mod server;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use crate::statistics::{Summary, table};
use client::Question;
use server::Server;

/// Measure how many requests a second an agent's rate limit service answers, and what each costs its process.
///
/// Beside it stands throttlecrab-server (`cargo install throttlecrab-server --root target/throttlecrab`, which needs Debian's
/// protobuf-compiler). Both count one key in memory, and are asked by h2load (Debian's nghttp2-client) on one connection. They take turns
/// of two seconds. What a request costs is the processor time of the server's process.
#[derive(Debug, Args)]
pub(crate) struct RlsArgs {
    /// Print an array of {name, in_flight, per_second, cpu_us} in place of a table
    #[arg(long)]
    json: bool,
    /// The program of Headworks
    #[arg(long, default_value = "target/release/headworks", value_name = "FILE")]
    headworks: PathBuf,
    /// The program of throttlecrab
    #[arg(long, default_value = "target/throttlecrab/bin/throttlecrab-server", value_name = "FILE")]
    throttlecrab: PathBuf,
    /// How long to measure, in all
    #[arg(long, default_value_t = 24, value_name = "S", value_parser = clap::value_parser!(u64).range(4..=3600))]
    seconds: u64,
    /// Requests in flight
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    in_flight: u16,
}

/// How long a turn is.
const TURN: Duration = Duration::from_secs(2);

/// One server, what it is asked, and what was seen of it, turn by turn.
struct Competitor {
    server: Server,
    question: Question,
    per_second: Vec<f64>,
    /// Processor time of a request, in microseconds.
    cpu_us: Vec<f64>,
}

/// A figure as `--json` prints it.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    in_flight: u16,
    per_second: f64,
    cpu_us: f64,
}

/// Runs the command.
pub(crate) fn run(args: &RlsArgs) -> io::Result<()> {
    let headworks = Competitor::new(Server::headworks(&args.headworks)?)?;
    let mut competitors = [headworks, Competitor::new(Server::throttlecrab(&args.throttlecrab)?)?];
    let end = Instant::now() + Duration::from_secs(args.seconds);
    while Instant::now() < end {
        for competitor in &mut competitors {
            competitor.turn(args.in_flight)?;
        }
    }
    show(args, &competitors)
}

impl Competitor {
    fn new(server: Server) -> io::Result<Self> {
        let question = server.question()?;
        Ok(Self { server, question, per_second: Vec::new(), cpu_us: Vec::new() })
    }

    fn turn(&mut self, in_flight: u16) -> io::Result<()> {
        let before = self.server.processor_time()?;
        let answered = client::ask(&self.question, TURN, in_flight)?;
        let spent = self.server.processor_time()? - before;
        #[allow(clippy::cast_precision_loss, reason = "answers of two seconds")]
        let answered = answered as f64;
        self.per_second.push(answered / TURN.as_secs_f64());
        self.cpu_us.push(spent.as_secs_f64() * 1e6 / answered);
        Ok(())
    }
}

fn show(args: &RlsArgs, competitors: &[Competitor]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let rows = competitors.iter().map(|competitor| {
        let (rate, cpu) = (Summary::of(&competitor.per_second), Summary::of(&competitor.cpu_us));
        (competitor.server.name(), rate, cpu)
    });
    if args.json {
        let figure = |(name, rate, cpu): (&'static str, Summary, Summary)| Figure {
            name,
            in_flight: args.in_flight,
            per_second: rate.median.round(),
            cpu_us: (cpu.median * 100.0).round() / 100.0,
        };
        let figures: Vec<Figure> = rows.map(figure).collect();
        return writeln!(out, "{}", serde_json::to_string_pretty(&figures)?);
    }
    let base = competitors.last().map_or(f64::NAN, |last| Summary::of(&last.per_second).median);
    let title = format!("{} in flight", args.in_flight);
    let head =
        [title, "median a second".into(), "min–max".into(), "µs of the server".into(), "÷ last".into()];
    let cells = |(name, rate, cpu): (&'static str, Summary, Summary)| {
        [
            format!("  {name}"),
            format!("{:.0}", rate.median),
            format!("{:.0}–{:.0}", rate.least, rate.greatest),
            format!("{:.1}", cpu.median),
            format!("{:.2}", rate.median / base),
        ]
    };
    let rows: Vec<_> = [head].into_iter().chain(rows.map(cells)).collect();
    table(&mut out, &rows)
}
