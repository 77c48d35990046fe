//! Why a command failed, and what its shell gets back.

use std::process::ExitCode;

/// Wrong usage or configuration: what the user gave must change before another try can work.
pub(crate) const USAGE: u8 = 64;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The user has to change a flag or a file.
    #[error("{0}")]
    Usage(String),
    /// A port, a file or a peer did not do its part.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// A failure with all its causes in one line.
    pub(crate) fn of(error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(error.source(), |cause| cause.source());
        let chain = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        Failure::Failed(chain)
    }

    /// What went wrong, unless the user has to change something first.
    pub(crate) fn unless_usage(self) -> Result<String, Failure> {
        match self {
            Failure::Failed(cause) => Ok(cause),
            usage @ Failure::Usage(_) => Err(usage),
        }
    }

    /// The same, for a flag that has to change.
    pub(crate) fn into_usage(self) -> Self {
        match self {
            Failure::Usage(text) | Failure::Failed(text) => Failure::Usage(text),
        }
    }

    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(USAGE),
            Failure::Failed(_) => ExitCode::FAILURE,
        }
    }
}

impl From<crate::serve::BindError> for Failure {
    fn from(error: crate::serve::BindError) -> Self {
        Failure::of(&error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::of(&error)
    }
}
