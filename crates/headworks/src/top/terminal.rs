//! The terminal: taken over, and given back however the command ends.

use std::io;
use std::time::Instant;

use ratatui::DefaultTerminal;

use super::draw;
use super::view::View;

/// The terminal while it is taken over. Given back when dropped, and by a hook when something panics.
pub(super) struct Screen(DefaultTerminal);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self(ratatui::try_init()?))
    }

    pub(super) fn draw(&mut self, view: &mut View, now: Instant) -> io::Result<()> {
        self.0.draw(|frame| draw::draw(frame, view, now))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
