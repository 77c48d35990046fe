//! Targets: where requests go.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use axum::http::Uri;

use super::LoadError;

/// A target, as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    text: String,
    place: Place,
    /// The name that its certificate must be for, where it is asked over TLS.
    pub(super) certified: Option<String>,
    /// The value of `Host`.
    pub(super) host: String,
    /// The path that is asked.
    pub(super) path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Host and port.
    Tcp(String),
    Unix(PathBuf),
}

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Text that is no target.
#[derive(Debug, thiserror::Error)]
#[error(
    "write http://HOST:PORT or https://HOST:PORT, with another path than /allow if need be, or unix:PATH"
)]
pub(crate) struct NoTarget;

impl FromStr for Target {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Self, NoTarget> {
        match text.strip_prefix("unix:") {
            Some("") => Err(NoTarget),
            Some(path) => Ok(Self::unix(path.into())),
            None => Self::from_url(text).ok_or(NoTarget),
        }
    }
}

impl Target {
    /// The server of a Unix socket.
    pub(crate) fn unix(socket: PathBuf) -> Self {
        Self {
            text: format!("unix:{}", socket.display()),
            place: Place::Unix(socket),
            certified: None,
            host: "localhost".to_owned(),
            path: "/allow".to_owned(),
        }
    }

    fn from_url(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let (secure, default_port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return None,
        };
        if uri.query().is_some() {
            return None;
        }
        let port = authority.port_u16().unwrap_or(default_port);
        Some(Self {
            text: text.to_owned(),
            place: Place::Tcp(format!("{}:{port}", authority.host())),
            certified: secure.then(|| authority.host().to_owned()),
            host: authority.to_string(),
            path: if uri.path() == "/" { "/allow" } else { uri.path() }.to_owned(),
        })
    }

    /// The address of the target, which is one of this machine unless others are allowed.
    pub(super) async fn resolve(&self, allow_remote: bool) -> Result<Address, LoadError> {
        let place = match &self.place {
            Place::Unix(path) => return Ok(Address::Unix(path.clone())),
            Place::Tcp(place) => place,
        };
        let failed = |source| LoadError::Resolve { target: self.text.clone(), source };
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(place).await.map_err(failed)?.collect();
        if !allow_remote && !addresses.iter().all(|address| is_here(*address)) {
            return Err(LoadError::Remote { target: self.text.clone() });
        }
        // A name of this machine often has an address of each family, while servers are told to listen on the IPv4 one.
        let preferred = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
        preferred.copied().map(Address::Tcp).ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
    }
}

/// Loopback, or the address that stands for "this machine" when one connects to it.
fn is_here(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    ip.is_loopback() || ip.is_unspecified()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn asks_allow_unless_told_another_path() {
        assert_eq!(target("http://127.0.0.1:8100").path, "/allow");
        assert_eq!(target("http://127.0.0.1:8100/").path, "/allow");
        assert_eq!(target("http://127.0.0.1:8100/pay").path, "/pay");
        assert_eq!(target("unix:/run/a.sock").path, "/allow");
    }

    #[test]
    fn refuses_what_it_could_not_ask() {
        for text in
            ["", "127.0.0.1:8100", "ftp://127.0.0.1", "http://", "unix:", "http://a@b/", "http://a/?q=1"]
        {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn finds_this_machine() {
        for (text, address) in [
            ("http://127.0.0.1:8100", "127.0.0.1:8100"),
            ("http://[::1]:8100", "[::1]:8100"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("https://127.0.0.1", "127.0.0.1:443"),
        ] {
            let found = target(text).resolve(false).await.unwrap();
            assert_eq!(found, Address::Tcp(address.parse().unwrap()));
        }
    }

    #[tokio::test]
    async fn goes_to_other_machines_only_when_allowed() {
        let other = target("http://192.0.2.1:8100");
        let error = other.resolve(false).await.unwrap_err();
        assert!(error.to_string().ends_with("add --allow-remote if it is yours to load"), "{error}");
        assert!(other.resolve(true).await.is_ok());
    }
}
