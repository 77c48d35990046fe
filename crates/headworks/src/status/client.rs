//! `headworks status`: asks a node's admin port.

use super::model::NodeStatus;
use super::table;
use crate::admin::{Client, Question};
use crate::cli::StatusArgs;
use crate::failure::Failure;

/// Runs the command.
pub(crate) async fn run(args: &StatusArgs) -> Result<(), Failure> {
    let (status, body) = ask_with(&args.client.client()?, &args.admin).await?;
    if args.json {
        println!("{}", String::from_utf8_lossy(&body));
    } else {
        print!("{}", table::render(&status));
    }
    Ok(())
}

/// What the node with this admin address, `http://host:port`, sees; and the same as it told it.
pub(crate) async fn ask(admin: &str) -> Result<(NodeStatus, Vec<u8>), Failure> {
    ask_with(&Client::default(), admin).await
}

/// The same, asked by a client that may have a token.
pub(crate) async fn ask_with(client: &Client, admin: &str) -> Result<(NodeStatus, Vec<u8>), Failure> {
    let body = client.ask(admin, Question::get("/status")).await?;
    let status = serde_json::from_slice(&body).map_err(|error| {
        Failure::Failed(format!("{admin} answered what is no status: {error}; is it an admin port?"))
    })?;
    Ok((status, body))
}
