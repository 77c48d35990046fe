//! What a node shows and asks to see, and what it may do without.

use std::net::SocketAddr;

use axum::http::Uri;
use headworks_agent::settings::is_on_this_machine;
use headworks_agent::tls::{Tls, TlsFiles};
use headworks_core::message::Tier;

use crate::cli::TlsArgs;
use crate::failure::Failure;
use crate::traces::COLLECTOR;

/// A node's credentials, and where they are used. Without any, nothing goes beyond this machine unless it is allowed.
#[derive(Clone, Default)]
pub(super) struct Security {
    pub(super) tls: Option<Tls>,
    on_admin: bool,
    on_http: bool,
    on_grpc: bool,
    plaintext_allowed: bool,
}

impl Security {
    /// Reads and checks credentials before anything is bound: there is no going on in plain text when they are bad.
    pub(super) fn of(args: &TlsArgs, tier: Tier) -> Result<Self, Failure> {
        let tls =
            files(args).map(Tls::load).transpose().map_err(|error| Failure::Usage(error.to_string()))?;
        if tls.as_ref().is_some_and(|tls| !tls.has_role(tier)) {
            let uri = format!("spiffe://TRUST-DOMAIN/headworks/{}", tier.name());
            tracing::warn!("the certificate of --tls-cert lacks the URI {uri}: peers will refuse this node");
        }
        Ok(Self {
            tls,
            on_admin: args.admin_tls,
            on_http: false,
            on_grpc: false,
            plaintext_allowed: args.allow_plaintext,
        })
    }

    /// The same, with or without TLS on the port that answers /allow.
    pub(super) fn with_http_tls(self, on_http: bool) -> Self {
        Self { on_http, ..self }
    }

    /// The same, with or without TLS on the port that answers proxies over gRPC.
    pub(super) fn with_grpc_tls(self, on_grpc: bool) -> Self {
        Self { on_grpc, ..self }
    }

    pub(super) fn admin_tls(&self) -> Option<Tls> {
        self.tls.clone().filter(|_| self.on_admin)
    }

    pub(super) fn http_tls(&self) -> Option<Tls> {
        self.tls.clone().filter(|_| self.on_http)
    }

    pub(super) fn grpc_tls(&self) -> Option<Tls> {
        self.tls.clone().filter(|_| self.on_grpc)
    }

    /// Children that show nothing may come from this machine only: from others, anyone could report what it likes.
    pub(super) fn check_tree(&self, flag: &str, address: SocketAddr) -> Result<(), Failure> {
        if self.tls.is_some() || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        self.plaintext(&format!(
            "{flag} {address} can be reached from other machines, and without TLS anyone there can report and read limits"
        ))
    }

    /// Envoys show nothing, and are spoken to in plain text.
    pub(super) fn check_rlqs(&self, flag: &str, address: SocketAddr) -> Result<(), Failure> {
        if address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        let what =
            format!("{flag} {address} can be reached from other machines, where anyone could report demand");
        self.plaintext_unless(&what, "run an aggregator beside Envoy, on loopback")
    }

    /// A token that goes to an admin port from another machine in plain text is one that anyone between can use.
    pub(super) fn check_admin(
        &self,
        flag: &str,
        address: SocketAddr,
        has_token: bool,
    ) -> Result<(), Failure> {
        if self.on_admin || !has_token || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        self.plaintext(&format!(
            "{flag} {address} takes a token from other machines, and they send it in plain text"
        ))
    }

    /// A parent on another machine is dialled over TLS: else anyone between could tell this node what to drop.
    pub(super) fn check_parents(&self, flag: &str, urls: &[String]) -> Result<(), Failure> {
        for url in urls {
            let uri: Uri = url.parse().map_err(|_| Failure::Usage(format!("{flag} {url} is no URL")))?;
            if uri.scheme_str() == Some("https") {
                if self.tls.is_none() {
                    let message = format!(
                        "{flag} {url} needs credentials; give --tls-cert, --tls-key and --tls-ca \
                         (`headworks certs dev` makes some to try it with)"
                    );
                    return Err(Failure::Usage(message));
                }
            } else if !is_on_this_machine(&uri) {
                self.plaintext(&format!("{flag} {url} is on another machine, and http:// is plain text"))?;
            }
        }
        Ok(())
    }

    /// Spans tell of requests, and nobody between is meant to read them.
    pub(super) fn check_traces(&self, flag: &str, url: &str) -> Result<(), Failure> {
        let uri: Uri = url.parse().map_err(|_| Failure::Usage(format!("{flag} {url} is no URL")))?;
        if is_on_this_machine(&uri) {
            return Ok(());
        }
        let what = format!("{flag} {url} is on another machine, and spans are sent in plain text");
        self.plaintext_unless(&what, COLLECTOR)
    }

    fn plaintext(&self, what: &str) -> Result<(), Failure> {
        let tls = "use TLS (--tls-cert, --tls-key, --tls-ca; https:// for parents; --admin-tls for --admin)";
        self.plaintext_unless(what, tls)
    }

    fn plaintext_unless(&self, what: &str, instead: &str) -> Result<(), Failure> {
        if self.plaintext_allowed {
            tracing::warn!("{what}; --allow-plaintext allows it");
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{what}; {instead}, or give --allow-plaintext if every machine on the network is trusted"
        )))
    }
}

/// All three or none: the command line has seen to that.
fn files(args: &TlsArgs) -> Option<TlsFiles> {
    let (cert, key, ca) = (args.tls_cert.clone()?, args.tls_key.clone()?, args.tls_ca.clone()?);
    Some(TlsFiles { cert, key, ca })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(allow_plaintext: bool) -> Security {
        Security::of(&TlsArgs { allow_plaintext, ..TlsArgs::default() }, Tier::Agent).unwrap()
    }

    #[test]
    fn plain_text_stays_on_this_machine_unless_allowed() {
        for address in ["127.0.0.1:7100", "[::1]:7100", "[::ffff:127.0.0.1]:7100"] {
            assert!(plain(false).check_tree("--listen", address.parse().unwrap()).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:7100", "[::]:7100", "10.0.0.1:7100"] {
            let address = address.parse().unwrap();
            let error = plain(false).check_tree("--listen", address).unwrap_err().to_string();
            assert!(error.contains("--listen") && error.contains("--allow-plaintext"), "{error}");
            assert!(plain(true).check_tree("--listen", address).is_ok());
        }
    }

    #[test]
    fn tokens_do_not_travel_in_plain_text_unless_allowed() {
        let wide = "0.0.0.0:9120".parse().unwrap();
        let check =
            |security: Security, address, has_token| security.check_admin("--admin", address, has_token);
        assert!(check(plain(false), wide, false).is_ok());
        assert!(check(plain(false), "127.0.0.1:9120".parse().unwrap(), true).is_ok());
        let error = check(plain(false), wide, true).unwrap_err().to_string();
        assert!(error.contains("--admin-tls") && error.contains("--allow-plaintext"), "{error}");
        assert!(check(plain(true), wide, true).is_ok());
    }

    #[test]
    fn parents_elsewhere_want_https_and_https_wants_credentials() {
        let check =
            |security: Security, url: &str| security.check_parents("--aggregators", &[url.to_owned()]);
        for url in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
            assert!(check(plain(false), url).is_ok(), "{url}");
        }
        let error = check(plain(false), "http://aggregator:7100").unwrap_err().to_string();
        assert!(error.contains("http://aggregator:7100") && error.contains("--allow-plaintext"), "{error}");
        assert!(check(plain(true), "http://aggregator:7100").is_ok());
        let error = check(plain(true), "https://aggregator:7100").unwrap_err().to_string();
        assert!(error.contains("--tls-cert"), "{error}");
    }
}
