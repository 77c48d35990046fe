//! `headworks top`: what a node sees, in a terminal, anew each second.

mod args;
mod draw;
mod history;
mod keys;
mod terminal;
mod view;

use std::io::IsTerminal;
use std::time::Instant;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::admin::Client;
use crate::failure::Failure;
use crate::status::{self, NodeStatus};

pub(crate) use args::TopArgs;
use keys::Wish;
use terminal::Screen;
use view::View;

/// Runs the command until somebody ends it.
pub(crate) async fn run(args: &TopArgs) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        let advice = "`headworks status` prints the same once, and `--json` for programs";
        return Err(Failure::Usage(format!(
            "top draws on a terminal, and standard output is none; {advice}"
        )));
    }
    let client = args.client.client()?;
    // Before anything is drawn: where nothing answers, that is an error and no empty screen.
    let (status, _) = status::ask_with(&client, &args.admin).await?;
    let mut view = View::new(&args.admin, args.sort, args.filter.clone(), args.every);
    view.take(status, Instant::now());
    // From here on a signal gives the terminal back.
    let mut ends = Ends::listen()?;
    let mut screen = Screen::open()?;
    watch(args, client, &mut view, &mut screen, &mut ends).await
}

/// The signals that end the command. Ctrl-C is a key while it runs, but others may send an interrupt.
struct Ends([Signal; 3]);

impl Ends {
    fn listen() -> std::io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn come(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
}

/// Asks in a task of its own, so that keys are never late, and draws whenever something changed.
async fn watch(
    args: &TopArgs,
    client: Client,
    view: &mut View,
    screen: &mut Screen,
    ends: &mut Ends,
) -> Result<(), Failure> {
    let (told, mut answers) = mpsc::channel(1);
    let asking = tokio::spawn(ask_on(client, args.admin.clone(), args.every, told));
    let mut wishes = keys::listen();
    // The age of figures that stay the same grows all the same.
    let mut clock = interval(std::time::Duration::from_secs(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        screen.draw(view, Instant::now())?;
        tokio::select! {
            Some(answer) = answers.recv() => match answer {
                Ok(status) => view.take(status, Instant::now()),
                Err(failure) => view.lose(failure),
            },
            wish = wishes.recv() => match wish {
                None | Some(Wish::Quit) => break,
                Some(Wish::Key(key)) => if view.press(key) { break },
                Some(Wish::Draw) => {}
            },
            () = ends.come() => break,
            _ = clock.tick() => {}
        }
    }
    asking.abort();
    Ok(())
}

type Answer = Result<NodeStatus, String>;

async fn ask_on(client: Client, admin: String, every: std::time::Duration, told: mpsc::Sender<Answer>) {
    let mut turn = interval(every);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turn.tick().await;
    loop {
        turn.tick().await;
        let answer = status::ask_with(&client, &admin).await;
        let answer = answer.map(|(status, _)| status).map_err(|failure| failure.to_string());
        if told.send(answer).await.is_err() {
            return;
        }
    }
}
