//! What a check of external authorization asks: facts of a request as attributes. Pure.

use std::borrow::Cow;
use std::sync::Arc;

use clap::ValueEnum;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::service::auth::v3::AttributeContext;
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Peer};

use crate::front::client;
use crate::front::derived::Derived;
use crate::front::query::{MAX_ATTRIBUTES, MAX_NAME_BYTES};
use crate::front::stand_in;

/// Which facts become attributes, beside what the route's `context_extensions` say.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthzSettings {
    pub(crate) facts: Vec<Fact>,
    pub(crate) derived: Arc<Derived>,
}

/// A fact of a request, and the attribute that it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fact {
    /// GET, POST and so on
    Method,
    /// Without the query; every distinct one may be a bucket, so match it with patterns
    Path,
    /// The authority that the client asked for
    Host,
    /// The name in the client's certificate, as the proxy tells it
    Principal,
}

/// What is wrong with a check, and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AskError {
    #[error(
        "an entry of context_extensions has no name, or one longer than {MAX_NAME_BYTES} bytes: give it a short one"
    )]
    BadName,
    #[error("more than {MAX_ATTRIBUTES} attributes: give context_extensions that limits match on")]
    TooMany,
}

/// The attributes of a request.
#[derive(Debug)]
pub(super) struct Asked<'r> {
    attributes: Vec<(&'r str, Cow<'r, str>)>,
}

impl<'r> Asked<'r> {
    pub(super) fn read(context: &'r AttributeContext, settings: &'r AuthzSettings) -> Result<Self, AskError> {
        let mut asked = Self { attributes: Vec::with_capacity(4) };
        // In one order, so that requests of one route are alike.
        let mut extensions: Vec<_> = context.context_extensions.iter().collect();
        extensions.sort_unstable();
        for (name, value) in extensions {
            if name.is_empty() || name.len() > MAX_NAME_BYTES {
                return Err(AskError::BadName);
            }
            asked.add(name, value)?;
        }
        let http = context.request.as_ref().and_then(|request| request.http.as_ref());
        for fact in &settings.facts {
            let (name, value) = fact.of(http, context.source.as_ref());
            asked.add(name, value)?;
        }
        let header = |name: &str| http?.headers.get(name).map(String::as_str);
        for (name, value) in settings.derived.of_headers(header) {
            asked.add(name, value)?;
        }
        if let Some((name, address)) =
            settings.derived.client_attribute().zip(address(context.source.as_ref()))
        {
            asked.add(name, client::value(address))?;
        }
        Ok(asked)
    }

    /// The first one to say something is believed: the route's configuration comes before what clients send.
    fn add(&mut self, name: &'r str, value: impl Into<Cow<'r, str>>) -> Result<(), AskError> {
        let value = value.into();
        if value.is_empty() || self.attributes.iter().any(|(other, _)| *other == name) {
            return Ok(());
        }
        if self.attributes.len() == MAX_ATTRIBUTES {
            return Err(AskError::TooMany);
        }
        let is_sound = stand_in::sound(value.as_bytes()).is_some();
        self.attributes.push((name, if is_sound { value } else { stand_in::of(value.as_bytes()).into() }));
        Ok(())
    }

    /// Name and value of each.
    pub(super) fn pairs(&self) -> Vec<(&str, &str)> {
        self.attributes.iter().map(|(name, value)| (*name, &**value)).collect()
    }
}

impl Fact {
    fn of<'r>(self, http: Option<&'r HttpRequest>, source: Option<&'r Peer>) -> (&'static str, &'r str) {
        let of = |read: fn(&HttpRequest) -> &str| http.map_or("", read);
        match self {
            Self::Method => ("method", of(|http| &http.method)),
            Self::Path => ("path", of(|http| http.path.split('?').next().unwrap_or_default())),
            Self::Host => ("host", of(|http| &http.host)),
            Self::Principal => ("principal", source.map_or("", |source| &source.principal)),
        }
    }
}

/// The client's address, as the proxy knows it: it has looked at what its own proxies say.
fn address(source: Option<&Peer>) -> Option<std::net::IpAddr> {
    match source?.address.as_ref()?.address.as_ref()? {
        Address::SocketAddress(socket) => client::address(&socket.address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::front::query::MAX_VALUE_BYTES;
    use envoy_types::pb::envoy::config::core::v3::{Address as WireAddress, SocketAddress};
    use envoy_types::pb::envoy::service::auth::v3::attribute_context::Request;

    use std::collections::HashMap;

    use super::*;

    fn context() -> AttributeContext {
        let headers =
            HashMap::from([("x-user".to_owned(), "ann".to_owned()), ("x-empty".to_owned(), String::new())]);
        let http = HttpRequest {
            method: "GET".to_owned(),
            path: "/pay?card=1".to_owned(),
            host: "shop.example".to_owned(),
            headers,
            ..HttpRequest::default()
        };
        let socket = SocketAddress { address: "2001:db8::7".to_owned(), ..SocketAddress::default() };
        let address = WireAddress { address: Some(Address::SocketAddress(socket)) };
        let source = Peer { address: Some(address), principal: "spiffe://a/b".to_owned(), ..Peer::default() };
        let extensions = [("service", "checkout"), ("procedure", "pay"), ("host", "configured")];
        AttributeContext {
            source: Some(source),
            request: Some(Request { http: Some(http), ..Request::default() }),
            context_extensions: extensions.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..AttributeContext::default()
        }
    }

    fn settings(facts: &[Fact], from: &[&str], client: Option<&str>) -> AuthzSettings {
        let from = from.iter().map(|from| from.parse().unwrap()).collect();
        let derived = Derived::new(from, client.map(str::to_owned), client::Trust::default());
        AuthzSettings { facts: facts.to_vec(), derived: Arc::new(derived) }
    }

    #[test]
    fn only_what_the_route_says_becomes_attributes_unless_more_is_asked_for() {
        let (context, plain) = (context(), settings(&[], &[], None));
        let asked = Asked::read(&context, &plain).unwrap();
        assert_eq!(asked.pairs(), [("host", "configured"), ("procedure", "pay"), ("service", "checkout")]);
    }

    #[test]
    fn facts_headers_and_the_client_come_behind_what_the_route_says() {
        let all = [Fact::Method, Fact::Path, Fact::Host, Fact::Principal];
        let (context, all) =
            (context(), settings(&all, &["x-user=user", "x-empty=empty", "x-no=no"], Some("client")));
        let asked = Asked::read(&context, &all).unwrap();
        let more = [("method", "GET"), ("path", "/pay"), ("principal", "spiffe://a/b"), ("user", "ann")];
        assert_eq!(asked.pairs()[3..7], more);
        assert_eq!(asked.pairs()[7..], [("client", "2001:db8::/64")]);
        assert_eq!(asked.pairs()[0], ("host", "configured"));
    }

    #[test]
    fn too_much_is_an_error_and_a_long_value_counts() {
        let (mut context, plain) = (context(), settings(&[], &[], None));
        context.context_extensions.insert("long".to_owned(), "x".repeat(MAX_VALUE_BYTES + 1));
        let asked = Asked::read(&context, &plain).unwrap();
        assert!(asked.pairs().iter().any(|(name, value)| *name == "long" && value.starts_with("sha256:")));
        context.context_extensions.extend((0..40).map(|n| (n.to_string(), "v".to_owned())));
        assert_eq!(Asked::read(&context, &plain).unwrap_err(), AskError::TooMany);
        context.context_extensions.insert("n".repeat(MAX_NAME_BYTES + 1), "v".to_owned());
        context.context_extensions.retain(|name, _| name.len() > 10);
        assert_eq!(Asked::read(&context, &plain).unwrap_err(), AskError::BadName);
        assert!(Asked::read(&AttributeContext::default(), &plain).unwrap().pairs().is_empty());
    }
}
