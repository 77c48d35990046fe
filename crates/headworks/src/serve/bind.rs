//! Binding: from an address to a listener, with errors that say what to do.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use headworks_agent::tls::Tls;
use tokio::net::{TcpListener, UnixListener};

/// A bound listener; a server is given one, and never binds by itself.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Bound to a TCP port.
    Tcp(TcpListener),
    /// Bound to a TCP port, and served over TLS.
    Tls(TcpListener, Tls),
    /// Bound to a path.
    Unix(UnixListener),
}

impl Listener {
    /// The same over TLS, if there are credentials for it. Those who may open a Unix socket are on this machine.
    pub(crate) fn with_tls(self, tls: Option<Tls>) -> Self {
        match (self, tls) {
            (Listener::Tcp(listener), Some(tls)) => Listener::Tls(listener, tls),
            (listener, _) => listener,
        }
    }

    /// The address of a TCP listener, with the port that the system chose for port 0.
    pub(crate) fn tcp_address(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Tcp(listener) | Listener::Tls(listener, _) => listener.local_addr(),
            Listener::Unix(_) => {
                Err(io::Error::new(ErrorKind::InvalidInput, "a Unix socket has no TCP address"))
            }
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp(listener) | Listener::Tls(listener, _) => match listener.local_addr() {
                Ok(address) => address.fmt(f),
                Err(_) => f.write_str("a TCP port"),
            },
            Listener::Unix(listener) => match listener.local_addr() {
                Ok(address) => match address.as_pathname() {
                    Some(path) => path.display().fmt(f),
                    None => f.write_str("an unnamed Unix socket"),
                },
                Err(_) => f.write_str("a Unix socket"),
            },
        }
    }
}

/// An address that could not be bound.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    /// The port could not be bound.
    #[error("cannot listen on {address}, given by {flag}: {advice}")]
    Tcp {
        /// The flag that gave the address, as users write it.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the user can do.
        advice: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The socket could not be made.
    #[error("cannot listen on {}, given by {flag}: {advice}", path.display())]
    Unix {
        /// The flag that gave the path, as users write it.
        flag: &'static str,
        /// The path.
        path: PathBuf,
        /// What the user can do.
        advice: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something that is no socket has the name; it is never removed.
    #[error(
        "cannot listen on {}, given by {flag}: it exists and is not a socket; choose another path, or move it away",
        path.display()
    )]
    NotASocket {
        /// The flag that gave the path, as users write it.
        flag: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// Another process serves the socket; it is never removed.
    #[error(
        "cannot listen on {}, given by {flag}: another process answers there; stop it, or choose another path",
        path.display()
    )]
    Answered {
        /// The flag that gave the path, as users write it.
        flag: &'static str,
        /// The path.
        path: PathBuf,
    },
}

/// Binds `address`, which the user gave with `flag` (`agent --http`).
pub(crate) async fn bind_tcp(flag: &'static str, address: SocketAddr) -> Result<Listener, BindError> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Listener::Tcp(listener)),
        Err(source) => Err(BindError::Tcp { flag, address, advice: advice_for_tcp(&source), source }),
    }
}

fn advice_for_tcp(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "another process or another flag has the port; choose another one (0 takes a free one)"
        }
        ErrorKind::PermissionDenied => "choose a port above 1023, or grant CAP_NET_BIND_SERVICE",
        ErrorKind::AddrNotAvailable => "no interface of this machine has the address; 0.0.0.0 takes them all",
        _ => "choose another address",
    }
}

/// Who may ask on a Unix socket: whoever gets to its folder, as on loopback. By the umask of services nobody could.
const SOCKET_MODE: u32 = 0o666;

/// Binds a socket at `path`, which the user gave with `flag`, in place of one that a dead process left there.
pub(crate) fn bind_unix(flag: &'static str, path: &Path) -> Result<Listener, BindError> {
    let failed = |source: io::Error| {
        let advice = advice_for_unix(&source);
        BindError::Unix { flag, path: path.to_owned(), advice, source }
    };
    match occupant(path).map_err(failed)? {
        Occupant::Nothing => {}
        Occupant::StaleSocket => fs::remove_file(path).map_err(failed)?,
        Occupant::LiveSocket => return Err(BindError::Answered { flag, path: path.to_owned() }),
        Occupant::Other => return Err(BindError::NotASocket { flag, path: path.to_owned() }),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE)).map_err(failed)?;
    Ok(Listener::Unix(listener))
}

fn advice_for_unix(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "make its folder first",
        ErrorKind::PermissionDenied => "let this user write to its folder, or choose another path",
        ErrorKind::InvalidInput => "the path is too long for a socket (107 bytes); choose a shorter one",
        _ => "choose another path",
    }
}

/// What is found where a socket should be.
enum Occupant {
    Nothing,
    StaleSocket,
    LiveSocket,
    Other,
}

/// Looks without following links: a link to a socket is not ours to remove.
fn occupant(path: &Path) -> io::Result<Occupant> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Occupant::Nothing),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => Ok(Occupant::Other),
        Ok(_) => Ok(if is_refused(path) { Occupant::StaleSocket } else { Occupant::LiveSocket }),
    }
}

/// Only a refusal tells that nobody listens; a full queue or a lack of rights tells of someone who does.
fn is_refused(path: &Path) -> bool {
    matches!(StdUnixStream::connect(path), Err(error) if error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[tokio::test]
    async fn replaces_a_socket_that_nobody_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        drop(bind_unix("--http-unix", &path).unwrap());
        assert!(path.exists());
        bind_unix("--http-unix", &path).unwrap();
    }

    #[tokio::test]
    async fn all_users_may_ask_on_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let _live = bind_unix("--http-unix", &path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, SOCKET_MODE);
    }

    #[tokio::test]
    async fn leaves_a_live_socket_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let _live = bind_unix("--http-unix", &path).unwrap();
        let error = bind_unix("--http-unix", &path).unwrap_err();
        assert!(error.to_string().contains("given by --http-unix: another process answers there"), "{error}");
        assert!(path.exists());
    }

    #[tokio::test]
    async fn never_removes_a_file_that_is_no_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "dear").unwrap();
        let error = bind_unix("--http-unix", &path).unwrap_err();
        assert!(error.to_string().contains("is not a socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "dear");
    }

    #[tokio::test]
    async fn says_that_the_folder_is_missing() {
        let error = bind_unix("--http-unix", Path::new("/nonexistent/agent.sock")).unwrap_err();
        assert!(error.to_string().ends_with("make its folder first"), "{error}");
        assert!(error.source().is_some());
    }

    #[tokio::test]
    async fn names_flag_address_and_way_out_when_a_port_is_taken() {
        let Listener::Tcp(first) = bind_tcp("--http", "127.0.0.1:0".parse().unwrap()).await.unwrap() else {
            unreachable!("a TCP listener")
        };
        let address = first.local_addr().unwrap();
        let error = bind_tcp("--http", address).await.unwrap_err().to_string();
        assert!(
            error.contains(&format!(
                "{address}, given by --http: another process or another flag has the port"
            )),
            "{error}"
        );
    }
}
