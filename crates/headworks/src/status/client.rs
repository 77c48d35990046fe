//! `headworks status`: asks a node's admin port.

use super::model::NodeStatus;
use super::table;
use crate::admin::{self, Question, Token};
use crate::cli::StatusArgs;
use crate::failure::Failure;

/// Runs the command.
pub(crate) async fn run(args: &StatusArgs) -> Result<(), Failure> {
    let token = args.token.read()?;
    let (status, body) = ask_with(&args.admin, token.as_ref()).await?;
    if args.json {
        println!("{}", String::from_utf8_lossy(&body));
    } else {
        print!("{}", table::render(&status));
    }
    Ok(())
}

/// What the node with this admin address, `http://host:port`, sees; and the same as it told it.
pub(crate) async fn ask(admin: &str) -> Result<(NodeStatus, Vec<u8>), Failure> {
    ask_with(admin, None).await
}

async fn ask_with(admin: &str, token: Option<&Token>) -> Result<(NodeStatus, Vec<u8>), Failure> {
    let body = admin::ask(admin, Question::get("/status", token)).await?;
    let status = serde_json::from_slice(&body).map_err(|error| {
        Failure::Failed(format!("{admin} answered what is no status: {error}; is it an admin port?"))
    })?;
    Ok((status, body))
}
