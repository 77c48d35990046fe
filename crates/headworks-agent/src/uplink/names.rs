//! From the names that parents were given by to the addresses they may be found at.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tonic::transport::Uri;

use super::by_rendezvous;
use super::route::Candidate;

/// How long a node waits for names when others are known already, or may be: a name server that hangs must not keep it
/// from them. What comes later is there for the next attempt.
const PATIENCE: Duration = Duration::from_secs(1);
/// A name has at most so many addresses; the others are not tried.
const MOST_ADDRESSES: usize = 256;

type Found = (usize, io::Result<Vec<SocketAddr>>);

/// The parents as they were given, with what is known of each.
#[derive(Debug)]
pub(super) struct Names {
    node: String,
    targets: Vec<Target>,
    lookups: JoinSet<Found>,
}

#[derive(Debug)]
struct Target {
    url: String,
    /// As last resolved. They stay when the name cannot be resolved: a name server that is away is no reason to leave.
    addresses: Vec<SocketAddr>,
    pending: bool,
    /// It failed, and that was logged.
    failing: bool,
}

impl Names {
    pub(super) fn new(node: String, urls: Vec<String>) -> Self {
        let target = |url| Target { url, addresses: Vec::new(), pending: false, failing: false };
        Self { node, targets: urls.into_iter().map(target).collect(), lookups: JoinSet::new() }
    }

    /// Looks all names up again.
    pub(super) async fn look_up(&mut self) {
        for (index, target) in self.targets.iter_mut().enumerate().filter(|(_, target)| !target.pending) {
            target.pending = true;
            let url = target.url.clone();
            self.lookups.spawn(async move { (index, resolve(&url).await) });
        }
        let end = Instant::now() + PATIENCE;
        while let Ok(Some(found)) = timeout_at(end, self.lookups.join_next()).await {
            // A lookup that panicked is as good as none; its name stays pending, and what was known of it stays.
            if let Ok((index, found)) = found {
                self.targets[index].take(found);
            }
        }
    }

    /// Every name has led somewhere.
    pub(super) fn is_complete(&self) -> bool {
        self.targets.iter().all(|target| !target.addresses.is_empty())
    }

    /// All addresses, in this node's own order of preference.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let mut seen = HashSet::new();
        let mut candidates: Vec<Candidate> = (self.targets.iter())
            .flat_map(|target| target.addresses.iter().map(|address| (target.url.clone(), *address)))
            .map(|(url, address)| Candidate { url, address })
            .filter(|candidate| seen.insert(candidate.label()))
            .collect();
        by_rendezvous(&self.node, &mut candidates, Candidate::label);
        candidates
    }
}

impl Target {
    fn take(&mut self, found: io::Result<Vec<SocketAddr>>) {
        self.pending = false;
        match found {
            Ok(addresses) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!(parent = self.url, "name resolves again");
                }
                self.addresses = addresses;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    let kept = self.addresses.len();
                    tracing::warn!(parent = self.url, %error, kept, "name does not resolve; will be tried again");
                }
            }
        }
    }
}

async fn resolve(url: &str) -> io::Result<Vec<SocketAddr>> {
    let (host, port) =
        host_and_port(url).ok_or_else(|| io::Error::other("no URL: write http://host:port"))?;
    let mut seen = HashSet::new();
    let found = lookup_host((host.as_str(), port)).await?;
    let addresses: Vec<SocketAddr> =
        found.filter(|address| seen.insert(*address)).take(MOST_ADDRESSES).collect();
    if addresses.is_empty() {
        return Err(io::Error::other("the name has no address"));
    }
    Ok(addresses)
}

fn host_and_port(url: &str) -> Option<(String, u16)> {
    let uri: Uri = url.parse().ok()?;
    let port = uri.port_u16().or(match uri.scheme_str()? {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    })?;
    let host = uri.host()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((bare.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_read_from_urls() {
        let read = |url| host_and_port(url).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(read("http://127.0.0.1:7100").unwrap(), "127.0.0.1 7100");
        assert_eq!(read("http://[::1]:7100").unwrap(), "::1 7100");
        assert_eq!(read("https://aggregators.zone-a").unwrap(), "aggregators.zone-a 443");
        assert_eq!(read("aggregators"), None);
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_keeps_nobody_from_the_others() {
        let urls = ["http://no-such-name.invalid:7100", "http://127.0.0.1:7100", "no URL"];
        let mut names = Names::new("agent".into(), urls.map(str::to_owned).to_vec());
        names.look_up().await;
        let found: Vec<String> = names.candidates().iter().map(Candidate::label).collect();
        assert_eq!((found, names.is_complete()), (vec!["http://127.0.0.1:7100".to_owned()], false));
    }

    #[tokio::test]
    async fn an_address_that_is_given_twice_is_tried_once() {
        let urls = ["http://localhost:7100", "http://127.0.0.1:7100"].map(str::to_owned).to_vec();
        let mut names = Names::new("agent".into(), urls);
        names.look_up().await;
        let found: Vec<String> = names.candidates().iter().map(Candidate::label).collect();
        assert_eq!(found.iter().filter(|label| *label == "http://127.0.0.1:7100").count(), 1, "{found:?}");
    }
}
