//! Keys, from the thread that waits for them.

use std::thread;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To end, whatever the view makes of keys.
    Quit,
    Key(KeyCode),
    /// To see the same on a screen of another size.
    Draw,
}

/// Listens for keys; the thread ends with the process, since nothing wakes it but a key.
pub(super) fn listen() -> mpsc::Receiver<Wish> {
    let (wishes, heard) = mpsc::channel(64);
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(wish) = wish(&event)
                && wishes.blocking_send(wish).is_err()
            {
                return;
            }
        }
    });
    heard
}

fn wish(event: &Event) -> Option<Wish> {
    match event {
        Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => None,
        Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Wish::Quit)
        }
        Event::Key(key) => Some(Wish::Key(key.code)),
        Event::Resize(..) => Some(Wish::Draw),
        _ => None,
    }
}
