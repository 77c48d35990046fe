//! `headworks shadow-all`: shows and throws the fleet's switch.

mod args;

use hyper::Method;

use crate::admin::{Client, Question, SwitchState, read};
use crate::failure::Failure;

pub(crate) use args::{ClientArgs, ShadowAllArgs};

/// Runs the command.
pub(crate) async fn run(args: &ShadowAllArgs) -> Result<(), Failure> {
    let client = args.client.client()?;
    let wanted = args.state.map(args::Wanted::is_on);
    let mut answered = 0;
    for controller in &args.admin {
        match ask(&client, controller, wanted).await {
            Ok(state) => {
                answered += 1;
                println!("{controller}: {}", spelled(state));
            }
            // What is misspelt has to change first; what is away must not keep the others from hearing it.
            Err(failure) => eprintln!("headworks: {}", failure.unless_usage()?),
        }
    }
    conclude(answered, args.admin.len(), wanted.is_some())
}

async fn ask(client: &Client, controller: &str, wanted: Option<bool>) -> Result<SwitchState, Failure> {
    let question = match wanted {
        None => Question::get("/shadow-all"),
        Some(on) => {
            Question { method: Method::PUT, body: format!("{{\"on\":{on}}}"), ..Question::get("/shadow-all") }
        }
    };
    let body = client.ask(controller, question).await?;
    read(controller, &body, "is no state of the switch")
}

fn spelled(state: SwitchState) -> String {
    let on = if state.on { "on" } else { "off" };
    format!("shadow-all is {on} (version {})", state.version)
}

fn conclude(answered: usize, all: usize, throws: bool) -> Result<(), Failure> {
    let did = if throws { "took it" } else { "answered" };
    if throws && answered > 0 {
        println!("{answered} of {all} controllers {did}; they tell the whole fleet");
    }
    match answered {
        _ if answered == all => Ok(()),
        0 => Err(Failure::Failed(format!("none of {all} controllers {did}"))),
        _ if throws => Err(Failure::Failed(format!(
            "{answered} of {all} controllers took it; the others hear it from their aggregators when they can"
        ))),
        _ => Err(Failure::Failed(format!("{answered} of {all} controllers answered"))),
    }
}
