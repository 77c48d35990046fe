//! The token of the admin port, and the file that it is read from.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How often the file is compared by content, as limits are.
const LOOK: Duration = Duration::from_secs(1);
/// Fewer bytes could be guessed.
const SHORTEST: usize = 16;
/// More bytes do not fit into the head of a request beside the rest of it.
const LONGEST: usize = 4096;
/// Others may read the file.
const OTHERS: u32 = 0o004;

/// Why a file gives no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("cannot read the token file {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the token file {} {fault}; write one line of {SHORTEST} to {LONGEST} visible ASCII characters, \
         as `openssl rand -hex 32` gives them",
        path.display()
    )]
    Unfit { path: PathBuf, fault: &'static str },
}

/// A token. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Reads a token from its file.
    pub(crate) fn read(path: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let most = LONGEST as u64 + 256;
        File::open(path).map_err(unreadable)?.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
        Self::parse(&bytes).map_err(|fault| TokenError::Unfit { path: path.to_owned(), fault })
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = str::from_utf8(bytes).map_err(|_| "is no text")?.trim();
        match text.len() {
            0 => Err("is empty"),
            1..SHORTEST => Err("holds a token that is too short"),
            SHORTEST..=LONGEST if text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Self(text.to_owned()))
            }
            SHORTEST..=LONGEST => Err("holds more than one word"),
            _ => Err("holds a token that is too long"),
        }
    }

    /// As the value of an `Authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether these are the bytes of the token. The time that this takes depends on the length of `guess` alone: it
    /// must not tell how far a guess is right.
    pub(super) fn is(&self, guess: &[u8]) -> bool {
        let token = self.0.as_bytes();
        let mut differs = u8::from(token.len() != guess.len());
        for (index, byte) in guess.iter().enumerate() {
            differs |= black_box(byte ^ token[index % token.len()]);
        }
        black_box(differs) == 0
    }
}

/// A token that follows its file.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    token: RwLock<Token>,
}

impl TokenFile {
    /// Reads the file; warns if others can, too.
    pub(super) fn open(path: PathBuf) -> Result<Self, TokenError> {
        let token = RwLock::new(Token::read(&path)?);
        let mode = fs::metadata(&path).map_or(0, |found| found.permissions().mode());
        if mode & OTHERS != 0 {
            tracing::warn!(file = %path.display(), "every user of this machine can read the token: chmod 600");
        }
        Ok(Self { path, token })
    }

    pub(super) fn is(&self, guess: &[u8]) -> bool {
        self.token.read().unwrap_or_else(PoisonError::into_inner).is(guess)
    }

    /// Looks at the file every second until `shutdown`. A file that holds no token changes nothing.
    pub(super) async fn follow(&self, shutdown: CancellationToken) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut faulty = false;
        while shutdown.run_until_cancelled(look.tick()).await.is_some() {
            match Token::read(&self.path) {
                Ok(token) => {
                    faulty = false;
                    self.take(token);
                }
                // Said once, not every second.
                Err(error) if !std::mem::replace(&mut faulty, true) => {
                    tracing::error!("the old admin token stays: {error}");
                }
                Err(_) => {}
            }
        }
    }

    fn take(&self, token: Token) {
        let mut current = self.token.write().unwrap_or_else(PoisonError::into_inner);
        if *current != token {
            *current = token;
            tracing::info!(file = %self.path.display(), "admin token changed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "0123456789abcdef";

    #[test]
    fn a_token_is_one_word_of_at_least_sixteen_bytes() {
        assert!(Token::parse(format!(" {GOOD}\r\n").as_bytes()).unwrap().is(GOOD.as_bytes()));
        let long = "x".repeat(LONGEST + 1);
        for unfit in ["", " \n", &GOOD[1..], "two words of letters", "päßwörter-überall", &long] {
            assert!(Token::parse(unfit.as_bytes()).is_err(), "{unfit:?}");
        }
        assert!(Token::parse(b"0123456789abcdef\xff").is_err());
    }

    #[test]
    fn only_all_of_it_is_the_token() {
        let token = Token::parse(GOOD.as_bytes()).unwrap();
        assert!(token.is(GOOD.as_bytes()));
        let twice = GOOD.repeat(2);
        for wrong in
            ["", "0", &GOOD[..15], &GOOD[1..], &twice, "0123456789abcdeF", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"]
        {
            assert!(!token.is(wrong.as_bytes()), "{wrong:?}");
        }
    }

    #[test]
    fn debug_output_shows_no_token() {
        let token = Token::parse(GOOD.as_bytes()).unwrap();
        assert!(!format!("{token:?}").contains(GOOD));
    }
}
