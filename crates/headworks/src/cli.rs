//! The command line: every command and flag, with the help that teaches them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{BoolishValueParser, Resettable, TypedValueParser};
use clap::{Arg, ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use headworks_agent::settings::{name, parent_url, region};
use headworks_agent::uplink::Stay;
use headworks_core::link::INTERVAL;

use crate::admin::AdminArgs;
use crate::bench::{ChildrenArgs, EchoArgs, FaninArgs, IdleArgs, SurgeArgs, TickArgs};
use crate::certs::CertsArgs;
use crate::duration;
use crate::front::ProxyArgs;
use crate::limits_apply::ApplyArgs;
use crate::limits_check::CheckArgs;
use crate::limits_diff::DiffArgs;
use crate::limits_explain::ExplainArgs;
use crate::limits_import::ImportArgs;
use crate::load::LoadArgs;
use crate::logging::LogArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::shadow_all::{ClientArgs, ShadowAllArgs};
use crate::simulate::SimulateArgs;
use crate::store::StoreArgs;
use crate::top::TopArgs;
use crate::traces;
use crate::tree::HoldBack;
use crate::trial::TrialArgs;

/// Limits that hold for the whole fleet, decided in each process without a network hop.
#[derive(Debug, Parser)]
#[command(name = "headworks", version, max_term_width = 100)]
#[command(after_help = "Start with `headworks dev`: a whole fleet in one process, held to its limits.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line that the program was started with.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&with_switches(Self::command()).try_get_matches()?)
    }
}

/// A switch that its variable turns off was not given: it needs no other flag, and excludes none.
fn with_switches(command: clap::Command) -> clap::Command {
    let read = |arg: Arg| if is_turned_off(&arg) { arg.env(Resettable::Reset) } else { arg };
    command.mut_args(read).mut_subcommands(with_switches)
}

fn is_turned_off(arg: &Arg) -> bool {
    let variable = arg.get_env().filter(|_| matches!(arg.get_action(), ArgAction::SetTrue));
    let value = variable.and_then(std::env::var_os);
    let command = clap::Command::default();
    value.is_some_and(|value| switch().parse_ref(&command, None, &value).is_ok_and(|on| !on))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole fleet in one process: controller, two zones, four agents and demo traffic with a surge
    Dev(DevArgs),
    /// Run an agent: answers /allow from the numbers that its aggregator pushes
    Agent(Box<AgentArgs>),
    /// Run a zone's aggregator: sums its agents' counts, passes plans on
    Aggregator(AggregatorArgs),
    /// Run a controller: computes the fleet's headrooms from a limits file
    Controller(ControllerArgs),
    /// Make certificates for TLS between tiers
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Work with limits files
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Send requests to an agent at a steady rate and count the verdicts
    Load(LoadArgs),
    /// Show what a node sees: zones, children, and each limit's rates and drop ratio
    Status(StatusArgs),
    // Their help is that of their flags: doc comments here would take its place.
    Top(TopArgs),
    ShadowAll(ShadowAllArgs),
    Trial(TrialArgs),
    Simulate(SimulateArgs),
    /// Measure fleets of real processes on this machine
    #[command(subcommand)]
    Bench(BenchCommand),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    // Their help is that of their flags: doc comments here would take its place.
    Surge(SurgeArgs),
    Idle(IdleArgs),
    Fanin(FaninArgs),
    Tick(TickArgs),
    // The processes that `fanin` and `tick` start beside what they measure.
    #[command(hide = true)]
    Children(ChildrenArgs),
    #[command(hide = true)]
    Echo(EchoArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertsCommand {
    // Its help is that of its flags: a doc comment here would take its place.
    Dev(CertsArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    // Their help is that of their flags: doc comments here would take its place.
    Check(CheckArgs),
    Import(ImportArgs),
    Diff(DiffArgs),
    Apply(ApplyArgs),
    Explain(ExplainArgs),
    /// Print a JSON Schema of limits files, by which editors complete and check them
    ///
    /// With the YAML language server, write it to a file and begin limits files with
    /// `# yaml-language-server: $schema=limits.schema.json`. It allows all that `limits check` does; of faults, `limits check` tells more.
    Schema,
}

/// What all roles have in common.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Name of this node, unique in the fleet [default: role, host name and process id]
    #[arg(long, env = "HEADWORKS_ID", value_name = "NAME", value_parser = name)]
    pub(crate) id: Option<String>,
    /// How long the last drop ratios stay when nothing is heard from above, before everything passes
    #[arg(long, env = "HEADWORKS_HOLD", default_value = "60s", value_parser = duration::parse, value_name = "TIME")]
    pub(crate) hold: Duration,
    /// Most time that a shutdown may take: not ready for a second, last report, streams closed
    #[arg(long, env = "HEADWORKS_GRACE", default_value = "10s", value_parser = duration::parse, value_name = "TIME")]
    pub(crate) grace: Duration,
    /// Check flags, files and limits, and exit with 64 where something is wrong; nothing is opened or dialled
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

impl CommonArgs {
    /// Whether the node was only to be checked; says that all is well, so it is asked when nothing is left to check.
    pub(crate) fn ends_here(&self, role: &str) -> bool {
        if self.check {
            println!("flags, files and limits of this {role} are sound");
        }
        self.check
    }
}

/// Who may connect, and how a node shows who it is.
#[derive(Debug, Default, Args)]
pub(crate) struct TlsArgs {
    /// This node's certificate in PEM, with what stands between it and its authority; it names the node's role in a
    /// URI spiffe://TRUST-DOMAIN/headworks/ROLE[/ID]. It is shown to parents and children; a new one is taken from the
    /// file without a restart. `headworks certs dev` makes a set to try this with
    #[arg(long, help_heading = "TLS", env = "HEADWORKS_TLS_CERT", value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, help_heading = "TLS", env = "HEADWORKS_TLS_KEY", value_name = "FILE", requires_all = ["tls_cert", "tls_ca"])]
    pub(crate) tls_key: Option<PathBuf>,
    /// Authorities that the certificates of parents and children must come from, in PEM
    #[arg(long, help_heading = "TLS", env = "HEADWORKS_TLS_CA", value_name = "FILE", requires_all = ["tls_cert", "tls_key"])]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Serve the admin port over TLS too, with the same certificate; clients need none
    #[arg(long, help_heading = "TLS", env = "HEADWORKS_ADMIN_TLS", requires = "tls_cert", value_parser = switch())]
    pub(crate) admin_tls: bool,
    /// Allow links to other machines that are neither encrypted nor authenticated: only on a network you trust
    #[arg(long, help_heading = "TLS", env = "HEADWORKS_ALLOW_PLAINTEXT", value_parser = switch())]
    pub(crate) allow_plaintext: bool,
}

/// How a node keeps to its parents.
#[derive(Debug, Args)]
pub(crate) struct StayArgs {
    /// About how long to stay with a parent that is not the first choice before that one is tried again: from half of this
    /// to one and a half times, and longer while it fails
    #[arg(long, env = "HEADWORKS_RETURN_AFTER", default_value = "60s", value_parser = stay, value_name = "TIME")]
    pub(crate) return_after: Duration,
    /// About how long a stream may last, give or take a tenth, before names are looked up again and a new one is opened;
    /// 0 is for ever
    #[arg(long, env = "HEADWORKS_MAX_CONNECTION_AGE", default_value = "1h", value_parser = stay_or_zero, value_name = "TIME")]
    pub(crate) max_connection_age: Duration,
}

impl StayArgs {
    pub(crate) fn stay(&self) -> Stay {
        Stay { return_after: self.return_after, max_age: self.max_connection_age }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) stay: StayArgs,
    /// Zone that this agent stands in
    #[arg(long, env = "HEADWORKS_ZONE", value_parser = name, required_unless_present = "standalone")]
    pub(crate) zone: Option<String>,
    /// Region of the zone
    #[arg(long, env = "HEADWORKS_REGION", default_value = "", value_parser = region)]
    pub(crate) region: String,
    /// Be a whole rate limiter in one process, for the exact limits of --limits: no aggregator, no controller
    #[arg(long, env = "HEADWORKS_STANDALONE", requires = "limits", conflicts_with_all = ["aggregators", "state_dir"], value_parser = switch())]
    pub(crate) standalone: bool,
    /// With --standalone: the limits file, or a folder of .yaml files; read again whenever its content changes
    #[arg(long, env = "HEADWORKS_LIMITS", value_name = "FILE|DIR", requires = "standalone")]
    pub(crate) limits: Option<PathBuf>,
    /// Aggregators of the zone, https:// or http://; the agent attaches to one, and to another when that is away. A name with several addresses
    /// stands for several aggregators
    #[arg(long, env = "HEADWORKS_AGGREGATORS", value_delimiter = ',', required_unless_present = "standalone", value_name = "URL,…", value_parser = parent_url)]
    pub(crate) aggregators: Vec<String>,
    /// Keep limits and drop ratios in a file of this directory, named after --id, and start from it when no aggregator
    /// answers
    #[arg(long, env = "HEADWORKS_STATE_DIR", value_name = "DIR", requires = "id")]
    pub(crate) state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Where to answer /allow, /stats, /healthz and /readyz
    #[arg(long, env = "HEADWORKS_HTTP", default_value = "127.0.0.1:8100", value_name = "ADDRESS")]
    pub(crate) http: SocketAddr,
    /// Serve that over TLS, with the certificate of --tls-cert; clients need none
    #[arg(long, env = "HEADWORKS_HTTP_TLS", requires = "tls_cert", help_heading = "TLS", value_parser = switch())]
    pub(crate) http_tls: bool,
    /// Answer the same on a Unix socket. All users of this machine may ask there, as on loopback; let the rights of its
    /// folder say who may not
    #[arg(long, env = "HEADWORKS_HTTP_UNIX", value_name = "PATH")]
    pub(crate) http_unix: Option<PathBuf>,
    /// Send a span of each request to /allow whose trace is recorded (`traceparent`) to this receiver of OpenTelemetry, over
    /// gRPC in plain text; nothing waits for it. For a receiver elsewhere run a collector on this host [default: no spans]
    #[arg(long, env = "HEADWORKS_TRACES", value_name = "URL", value_parser = traces::receiver_url)]
    pub(crate) traces: Option<String>,
    /// Where to serve /metrics, /status, /healthz and /readyz
    #[arg(long, env = "HEADWORKS_ADMIN", default_value = "127.0.0.1:9100", value_name = "ADDRESS")]
    pub(crate) admin: SocketAddr,
    #[command(flatten)]
    pub(crate) access: AdminArgs,
    #[command(flatten)]
    pub(crate) proxy: ProxyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AggregatorArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) stay: StayArgs,
    /// Zone that this aggregator sums
    #[arg(long, env = "HEADWORKS_ZONE", value_parser = name)]
    pub(crate) zone: String,
    /// Region of the zone
    #[arg(long, env = "HEADWORKS_REGION", default_value = "", value_parser = region)]
    pub(crate) region: String,
    /// Where agents attach (gRPC)
    #[arg(long, env = "HEADWORKS_LISTEN", default_value = "127.0.0.1:7100", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Controllers, https:// or http://; the aggregator attaches to all of them
    #[arg(long, env = "HEADWORKS_CONTROLLERS", value_delimiter = ',', required = true, value_name = "URL,…", value_parser = parent_url)]
    pub(crate) controllers: Vec<String>,
    /// Where to hand quotas to Envoys (gRPC, envoy.service.rate_limit_quota.v3, for the filter rate_limit_quota): what they report is
    /// demand like that of agents, and their shares of each limit go back to them as buckets of tokens. The keys of their bucket
    /// ids are attributes, and so is `domain`. In plain text, so keep it on this host or on a network you trust; Envoy's
    /// configuration for it is deploy/envoy/rlqs.yaml [default: no Envoys]
    #[arg(long, env = "HEADWORKS_RLQS", value_name = "ADDRESS")]
    pub(crate) rlqs: Option<SocketAddr>,
    /// Where to serve /metrics, /status, /healthz and /readyz
    #[arg(long, env = "HEADWORKS_ADMIN", default_value = "127.0.0.1:9110", value_name = "ADDRESS")]
    pub(crate) admin: SocketAddr,
    #[command(flatten)]
    pub(crate) access: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The limits file, or a folder of .yaml files; read again whenever its content changes
    #[arg(long, env = "HEADWORKS_LIMITS", value_name = "FILE|DIR")]
    pub(crate) limits: PathBuf,
    /// Where aggregators attach (gRPC)
    #[arg(long, env = "HEADWORKS_LISTEN", default_value = "127.0.0.1:7200", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Where to serve the console, a page for browsers, and /metrics, /status, /limits, /trial, /shadow-all, /healthz and /readyz
    #[arg(long, env = "HEADWORKS_ADMIN", default_value = "127.0.0.1:9120", value_name = "ADDRESS")]
    pub(crate) admin: SocketAddr,
    #[command(flatten)]
    pub(crate) access: AdminArgs,
    /// Least time between two reports of one node, from 10ms; 1s, the report interval, turns early reports off
    #[arg(long, env = "HEADWORKS_REPORT_SPACING", default_value = "50ms", value_parser = spacing, value_name = "TIME")]
    pub(crate) report_spacing: Duration,
    /// Hold a changed limits file back if, at the present demand, it would newly drop more than this part of what passes any of
    /// its limits; it stays held until `headworks limits apply`, or `confirm: DIGEST` in the file, says that it is meant. A
    /// controller that starts takes its file as it is
    #[arg(long, env = "HEADWORKS_HOLD_BACK", default_value = "10%", value_parser = HoldBack::parse, value_name = "PART|off")]
    pub(crate) hold_back: HoldBack,
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// The limits file, or a folder of .yaml files [default: a built-in example]
    #[arg(long, env = "HEADWORKS_LIMITS", value_name = "FILE|DIR")]
    pub(crate) limits: Option<PathBuf>,
    /// Where the first agent answers /allow
    #[arg(long, env = "HEADWORKS_HTTP", default_value = "127.0.0.1:8100", value_name = "ADDRESS")]
    pub(crate) http: SocketAddr,
    /// Where the controller serves the console, /metrics, /status and /shadow-all
    #[arg(long, env = "HEADWORKS_ADMIN", default_value = "127.0.0.1:9120", value_name = "ADDRESS")]
    pub(crate) admin: SocketAddr,
    #[command(flatten)]
    pub(crate) access: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Admin address of the node to ask; https:// where it has --admin-tls
    #[arg(long, env = "HEADWORKS_STATUS_ADMIN", default_value = "http://127.0.0.1:9120", value_name = "URL")]
    pub(crate) admin: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A flag that a variable may set too, in the ways people write yes and no there.
fn switch() -> BoolishValueParser {
    BoolishValueParser::new()
}

/// A spacing of reports: below 10 ms, small news would take more of a node's time than the news are worth.
fn spacing(text: &str) -> Result<Duration, String> {
    let spacing = duration::parse(text)?;
    let is_sound = (Duration::from_millis(10)..=INTERVAL).contains(&spacing);
    is_sound.then_some(spacing).ok_or_else(|| "write a time from 10ms to 1s, such as 50ms".to_owned())
}

/// A time to stay with a parent: below a second, nodes would do nothing but move.
fn stay(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    let is_sound = time >= Duration::from_secs(1);
    is_sound.then_some(time).ok_or_else(|| "write a time from 1s to 24h, such as 60s".to_owned())
}

fn stay_or_zero(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    stay(text).map_err(|advice| format!("{advice}, or 0 for ever"))
}
