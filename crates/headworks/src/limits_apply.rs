//! `headworks limits apply`: confirms limits that controllers hold back.

use std::collections::BTreeMap;

use clap::Args;
use headworks_core::limits::Digest;
use hyper::Method;

use crate::admin::{Client, Confirmation, Confirmed, Question, read};
use crate::failure::Failure;
use crate::legible;
use crate::shadow_all::ClientArgs;
use crate::status::{self, HeldView};

/// Bytes shown of what a limit would do.
const LONGEST: usize = 256;

/// Confirm limits that controllers hold back, by their digest
///
/// A controller holds a changed limits file back when, at the present demand, it would newly drop more than --hold-back of what
/// passes one of its limits: so that 25 written for 25000 drops nothing. `headworks status` shows what is held back and why. This
/// command puts exactly that in force; what the file has held since then is judged by itself.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  headworks limits apply --token-file token
  headworks limits apply --token-file token --admin http://c1:9120,http://c2:9120 --digest 0f…")]
pub(crate) struct ApplyArgs {
    /// Admin addresses of all controllers: each judges by what it hears, and is confirmed by itself
    #[arg(
        long,
        env = "HEADWORKS_CONTROLLERS_ADMIN",
        default_value = "http://127.0.0.1:9120",
        value_delimiter = ',',
        value_name = "URL,…"
    )]
    admin: Vec<String>,
    /// Digest of the limits that are meant, as `headworks limits check` prints it [default: whatever is held back]
    #[arg(long, value_parser = digest)]
    digest: Option<Digest>,
    #[command(flatten)]
    client: ClientArgs,
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "write the 32 digits that `headworks limits check` prints".to_owned())
}

/// Runs the command.
pub(crate) async fn run(args: &ApplyArgs) -> Result<(), Failure> {
    let client = args.client.client()?;
    let wanted = match args.digest {
        Some(digest) => Some(digest.to_string()),
        None => find(&client, &args.admin).await?,
    };
    let Some(digest) = wanted else {
        println!("no limits are held back");
        return Ok(());
    };
    let mut took = 0;
    for controller in &args.admin {
        match confirm(&client, controller, &digest).await {
            Ok(confirmed) => {
                took += 1;
                let since = if confirmed.already { "already" } else { "now" };
                println!("{controller}: limits {digest} are in force {since}");
            }
            // What is misspelt has to change first; what is away must not keep the others from hearing it.
            Err(failure) => eprintln!("headworks: {}", failure.unless_usage()?),
        }
    }
    let all = args.admin.len();
    if took == all { Ok(()) } else { Err(Failure::Failed(format!("{took} of {all} controllers took it"))) }
}

/// The digest of what controllers hold back, after saying what that is; `None` if they hold nothing back.
async fn find(client: &Client, controllers: &[String]) -> Result<Option<String>, Failure> {
    let mut held: BTreeMap<String, (&str, HeldView)> = BTreeMap::new();
    let mut silent = None;
    for controller in controllers {
        match status::ask_with(client, controller).await {
            Ok((status, _)) => {
                if let Some(view) = status.limits_held {
                    held.insert(view.digest.clone(), (controller, view));
                }
            }
            Err(failure) => silent = Some(failure.unless_usage()?),
        }
    }
    let mut all = held.into_iter();
    match (all.next(), all.next(), silent) {
        (Some((digest, (controller, view))), None, _) => {
            show(controller, &view);
            Ok(Some(digest))
        }
        (Some((one, (a, _))), Some((other, (b, _))), _) => Err(Failure::Failed(format!(
            "controllers hold different limits back: {a} has {one}, {b} has {other}; say with --digest which are meant"
        ))),
        // Whoever did not answer may hold some back.
        (None, _, Some(cause)) => Err(Failure::Failed(cause)),
        (None, _, None) => Ok(None),
    }
}

fn show(controller: &str, held: &HeldView) {
    println!("{controller}: limits {} were held back:", legible::cut(&held.digest, LONGEST));
    for cause in &held.causes {
        println!("  {}", legible::cut(&cause.said, LONGEST));
    }
}

async fn confirm(client: &Client, controller: &str, digest: &str) -> Result<Confirmed, Failure> {
    let confirmation = Confirmation { digest: digest.to_owned() };
    let body = serde_json::to_string(&confirmation).map_err(|error| Failure::of(&error))?;
    let question = Question { method: Method::POST, body, ..Question::get("/limits/apply") };
    let answer = client.ask(controller, question).await?;
    read(controller, &answer, "is no confirmation")
}
