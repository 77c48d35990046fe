//! The flags of `headworks load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use headworks_agent::tls::Trust;

use super::LoadError;
use super::attribute::Attribute;
use super::target::Target;
use crate::duration;

/// Ask an agent for permission at a steady rate, and tell what came of it.
///
/// Requests are due at fixed times whatever the answers take, and latency counts from when a request was due, so a
/// slow agent shows as slow. Progress goes to stderr, the summary to stdout; Ctrl-C ends early and still prints it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  headworks load --key demo --attr service=checkout --rps 150 --duration 30s
  headworks load --target http://127.0.0.1:8100 --target unix:/run/headworks.sock --key demo --json
  headworks load --key demo --closed 64        how many requests a second the agent answers at most")]
pub(crate) struct LoadArgs {
    /// Where to ask: http://HOST:PORT, https://HOST:PORT or unix:PATH; repeat it to take several in turn
    #[arg(long = "target", value_name = "URL", default_value = "http://127.0.0.1:8100")]
    #[arg(env = "HEADWORKS_LOAD_TARGET", value_delimiter = ',')]
    pub(crate) targets: Vec<Target>,

    /// The key to ask for: sent as the attribute `key`
    #[arg(long, env = "HEADWORKS_LOAD_KEY")]
    pub(crate) key: String,

    /// One more attribute of each request, such as service=checkout; repeat it for several
    #[arg(long = "attr", value_name = "NAME=VALUE", env = "HEADWORKS_LOAD_ATTR")]
    pub(crate) attributes: Vec<Attribute>,

    /// Requests a second, over all targets
    #[arg(long, default_value = "100", value_parser = rate, conflicts_with = "closed")]
    #[arg(env = "HEADWORKS_LOAD_RPS")]
    pub(crate) rps: f64,

    /// How requests are spaced. Clients in step with each other and with a refill get all of it or nothing; `jittered`
    /// ones don't keep step, and offer as much: each request is due somewhere within its own slot of an even timetable
    #[arg(long, value_enum, default_value_t = Spacing::Jittered, conflicts_with = "closed")]
    #[arg(env = "HEADWORKS_LOAD_SPACING")]
    pub(crate) spacing: Spacing,

    /// How long to go on, such as 30s or 5m
    #[arg(long, default_value = "10s", value_parser = duration::parse, env = "HEADWORKS_LOAD_DURATION")]
    pub(crate) duration: Duration,

    /// A request that has no answer this long after it was due counts as an error
    #[arg(long, default_value = "1s", value_parser = duration::parse, env = "HEADWORKS_LOAD_TIMEOUT")]
    pub(crate) timeout: Duration,

    /// What a client does that gets no answer: `open` goes on with its work, `closed` gives up
    #[arg(long, value_enum, default_value_t = Fail::Open, env = "HEADWORKS_LOAD_FAIL")]
    pub(crate) fail: Fail,

    /// The most connections, each with one request in flight; a request that finds them all busy is an error (overrun)
    #[arg(long, default_value_t = 256, value_parser = connections, conflicts_with = "closed", value_name = "N")]
    #[arg(env = "HEADWORKS_LOAD_CONNECTIONS")]
    pub(crate) connections: usize,

    /// Ask on N connections as fast as answers come, to measure throughput; latency then counts from the sending
    #[arg(long, value_name = "N", value_parser = connections, env = "HEADWORKS_LOAD_CLOSED")]
    pub(crate) closed: Option<usize>,

    /// Authorities that the certificate of an https:// target must come from, in PEM
    #[arg(long, env = "HEADWORKS_TLS_CA", value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,

    /// Print the summary as one JSON object
    #[arg(long, env = "HEADWORKS_LOAD_JSON")]
    pub(crate) json: bool,

    /// Allow targets that are not on this machine
    #[arg(long, env = "HEADWORKS_LOAD_ALLOW_REMOTE")]
    pub(crate) allow_remote: bool,
}

/// What a client does that gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fail {
    /// Goes on with its work.
    Open,
    /// Gives up.
    Closed,
}

/// How requests are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Spacing {
    /// Each at the start of its slot, like clockwork.
    Even,
    /// Each at a random time within its slot.
    Jittered,
}

impl LoadArgs {
    /// The authorities of targets that are asked over TLS.
    pub(super) fn trust(&self) -> Result<Trust, LoadError> {
        Ok(Trust::load(self.tls_ca.as_deref().ok_or(LoadError::NoTrust)?)?)
    }

    /// The query of each request, encoded.
    pub(super) fn query(&self) -> String {
        query(&self.key, &self.attributes)
    }
}

/// The query of a request for this key with these further attributes, encoded.
pub(super) fn query(key: &str, attributes: &[Attribute]) -> String {
    let key = Attribute { name: "key".to_owned(), value: key.to_owned() };
    let all = std::iter::once(&key).chain(attributes);
    all.map(Attribute::encoded).collect::<Vec<_>>().join("&")
}

/// A bound above what one process can send, so that a slip of the finger is told at once.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.001..=1_000_000.0).contains(rate));
    rate.ok_or_else(|| "write a number of requests a second from 0.001 to 1000000, such as 150".to_owned())
}

fn connections(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=10_000).contains(count));
    count.ok_or_else(|| "write a number of connections from 1 to 10000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn parse(text: &str) -> Result<LoadArgs, clap::Error> {
        Program::try_parse_from(text.split(' ')).map(|program| program.load)
    }

    #[test]
    fn takes_the_flags_of_the_manual() {
        let args = parse(
            "load --target http://127.0.0.1:8100 --key K --attr service=checkout --rps 150 --duration 30s",
        )
        .unwrap();
        assert_eq!(args.query(), "key=K&service=checkout");
        assert_eq!((args.rps, args.duration), (150.0, Duration::from_secs(30)));
        assert_eq!((args.fail, args.json, args.spacing), (Fail::Open, false, Spacing::Jittered));
    }

    #[test]
    fn encodes_what_a_query_cannot_hold() {
        let args = parse("load --key a&b=c+d%é --attr x=1=2").unwrap();
        assert_eq!(args.query(), "key=a%26b%3Dc%2Bd%25%C3%A9&x=1%3D2");
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for flags in [
            "--rps 0",
            "--rps -1",
            "--rps NaN",
            "--duration 10",
            "--attr nonsense",
            "--connections 0",
            "--rps 5 --closed 2",
            "--spacing odd",
        ] {
            assert!(parse(&format!("load --key K {flags}")).is_err(), "{flags}");
        }
        assert!(parse("load --rps 5").is_err(), "without a key");
    }
}
