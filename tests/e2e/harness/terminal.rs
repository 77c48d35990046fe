//! A real terminal without a window: tmux, with one pane.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A terminal in which a shell runs one command after the other; ended when dropped.
pub(crate) struct Terminal {
    folder: TempDir,
}

impl Terminal {
    /// Of so many columns and rows.
    #[track_caller]
    pub(crate) fn start(columns: u32, rows: u32) -> Self {
        let terminal = Self { folder: tempfile::tempdir().unwrap() };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let shell = "env -i PATH=/usr/bin:/bin TERM=$TERM LANG=C.UTF-8 PS1='$ ' sh";
        terminal.tell(&["-u", "-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, shell]);
        terminal
    }

    /// Types a line, and Enter.
    #[track_caller]
    pub(crate) fn runs(&self, line: &str) {
        self.types(line);
        self.press("Enter");
    }

    /// Types a text.
    #[track_caller]
    pub(crate) fn types(&self, text: &str) {
        self.tell(&["send-keys", "-l", text]);
    }

    /// Presses a key by the name that tmux has for it.
    #[track_caller]
    pub(crate) fn press(&self, key: &str) {
        self.tell(&["send-keys", key]);
    }

    /// What is on the screen.
    #[track_caller]
    pub(crate) fn screen(&self) -> String {
        self.tell(&["capture-pane", "-p"])
    }

    /// Whether a program has taken the whole screen over.
    #[track_caller]
    pub(crate) fn is_taken_over(&self) -> bool {
        self.tell(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }

    #[track_caller]
    fn tell(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(self.socket()).args(args).output();
        let output = output.expect("tmux is missing: install Debian's package tmux");
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.socket()).arg("kill-server").status();
    }
}
