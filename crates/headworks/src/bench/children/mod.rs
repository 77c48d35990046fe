//! The load generator of `bench fanin` and `bench tick`: a process full of children, each with a stream of its own to one
//! parent, as agents and aggregators speak it.
//!
//! It runs beside what is measured, so that its own work does not count. What it says comes from the real uplink and the
//! real encoding; only the counters are made up.

mod child;
mod tally;

use std::io::{self, BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clap::{Args, ValueEnum};
use headworks_core::message::Tier;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use child::{Books, Child};

pub(super) use child::LIMIT;
pub(super) use tally::Tally;

/// Children attach one after the other, as hosts start: so their reports do not all come at the same moment later. No more than
/// `AT_ONCE` wait for their parent, so that none gives up where the machine is slow.
const SPREAD: Duration = Duration::from_millis(1);
const LEAST_SPREAD: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 100;
/// How often it tells what was said and heard so far.
const TELL: Duration = Duration::from_millis(200);

/// What the bench asks of the generator. Nobody else calls it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChildrenArgs {
    #[arg(long)]
    pub(super) parent: String,
    #[arg(long, value_enum)]
    pub(super) tier: ChildTier,
    #[arg(long)]
    pub(super) children: u32,
    /// Buckets of each child that count something in every interval
    #[arg(long)]
    pub(super) buckets: u32,
    /// Buckets of each child that it tells of once
    #[arg(long)]
    pub(super) resting: u32,
}

/// What the children are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChildTier {
    Agent,
    Aggregator,
}

impl From<ChildTier> for Tier {
    fn from(tier: ChildTier) -> Self {
        match tier {
            ChildTier::Agent => Tier::Agent,
            ChildTier::Aggregator => Tier::Aggregator,
        }
    }
}

/// Runs the generator until its standard input ends, and tells on standard output, one JSON object a line, what it said
/// and heard.
pub(crate) async fn children(args: &ChildrenArgs) -> Result<(), Failure> {
    let (books, stop) = (Arc::new(Books::default()), CancellationToken::new());
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    for number in 0..args.children {
        let child = Child::new(args, number, books.clone());
        let (parent, stop) = (args.parent.clone(), stop.clone());
        let wait = LEAST_SPREAD.max(SPREAD * args.children) * number / args.children;
        let turns = turns.clone();
        tokio::spawn(async move {
            sleep(wait).await;
            // Nobody closes it.
            let turn = turns.acquire_owned().await.ok();
            child.run(parent, turn, stop).await;
        });
    }
    let asked = stop.clone();
    std::thread::spawn(move || {
        // Nothing is said to it: its parent ends the input, or is gone.
        let _ = io::stdin().lock().lines().last();
        asked.cancel();
    });
    while !stop.is_cancelled() {
        tell(&books)?;
        let _ = stop.run_until_cancelled(sleep(TELL)).await;
    }
    settle(&books).await;
    tell(&books)
}

/// Waits until all that was said is answered, but not for ever.
async fn settle(books: &Books) {
    const PATIENCE: u32 = 50;
    for _ in 0..PATIENCE {
        sleep(TELL).await;
        if books.answered.load(Relaxed) >= books.reports.load(Relaxed) {
            return;
        }
    }
}

fn tell(books: &Books) -> Result<(), Failure> {
    let line = serde_json::to_string(&books.tally()).unwrap_or_default();
    Ok(writeln!(io::stdout(), "{line}")?)
}
