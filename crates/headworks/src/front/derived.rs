//! Attributes that a request does not name itself: from its headers, and from where it comes. Pure.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};

use super::client::{self, Trust};
use super::query::MAX_NAME_BYTES;

/// What says whom a proxy speaks for.
const FORWARDED: &str = "x-forwarded-for";

/// A header, and the attribute that its value becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FromHeader {
    header: HeaderName,
    attribute: String,
}

impl FromStr for FromHeader {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = || format!("{text:?}: write HEADER=ATTRIBUTE, such as x-api-key=caller");
        let (header, name) = text.split_once('=').ok_or_else(advice)?;
        let header = header.trim().to_ascii_lowercase().parse().map_err(|_| advice())?;
        Ok(Self { header, attribute: attribute(name.trim())? })
    }
}

/// The name of an attribute.
pub(crate) fn attribute(text: &str) -> Result<String, String> {
    let is_sound = (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    // What a query calls the cost is no attribute.
    if !is_sound || text == "n" {
        return Err(format!("{text:?}: name an attribute in 1 to {MAX_NAME_BYTES} bytes; `n` is the cost"));
    }
    Ok(text.to_owned())
}

/// Where such attributes come from. By default there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Derived {
    headers: Vec<FromHeader>,
    /// The attribute that the client's address becomes.
    client: Option<String>,
    trust: Trust,
}

impl Derived {
    pub(crate) fn new(headers: Vec<FromHeader>, client: Option<String>, trust: Trust) -> Self {
        Self { headers, client, trust }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.headers.is_empty() && self.client.is_none()
    }

    pub(super) fn client_attribute(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// Name and value of those that come from headers, which `get` looks up by names in lower case. An empty one counts as absent.
    pub(super) fn of_headers<'s, 'h>(
        &'s self,
        get: impl Fn(&str) -> Option<&'h str>,
    ) -> impl Iterator<Item = (&'s str, &'h str)> {
        let value = move |from: &'s FromHeader| Some((&*from.attribute, get(from.header.as_str())?));
        self.headers.iter().filter_map(value).filter(|(_, value)| !value.is_empty())
    }

    /// Name and value of all, of a request that came over HTTP from this peer, or over a Unix socket. Of a header that is there
    /// several times the first line counts; one that is not UTF-8 counts as absent.
    pub(super) fn of_request<'s>(
        &'s self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Vec<(&'s str, String)> {
        let get = |name: &str| headers.get(name).and_then(|value| str::from_utf8(value.as_bytes()).ok());
        let mut all: Vec<_> = self.of_headers(get).map(|(name, value)| (name, value.to_owned())).collect();
        if let Some(name) = self.client_attribute() {
            let lines = headers.get_all(FORWARDED).iter().map(|line| line.to_str().unwrap_or("unreadable"));
            let (client, is_guess) = self.trust.client(peer, lines);
            if is_guess {
                tracing::warn!(
                    "a trusted proxy sent an X-Forwarded-For that ends with no address: its own counts in its place"
                );
            }
            all.extend(client.map(|client| (name, client::value(client))));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(from: &[&str]) -> Derived {
        let trust = Trust::new(vec!["127.0.0.0/8".parse().unwrap()]);
        Derived::new(
            from.iter().map(|from| from.parse().unwrap()).collect(),
            Some("client".to_owned()),
            trust,
        )
    }

    fn of(lines: &[(&'static str, &[u8])]) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers
                .append(HeaderName::from_static(name), axum::http::HeaderValue::from_bytes(value).unwrap());
        }
        let told = derived(&["X-Api-Key=caller", "x-team = team"]);
        let peer = Some(IpAddr::from([127, 0, 0, 1]));
        told.of_request(&headers, peer).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn headers_and_the_client_become_attributes() {
        let lines: [(&str, &[u8]); 3] =
            [("x-api-key", b"k"), ("x-api-key", b"second"), ("x-forwarded-for", b"203.0.113.7:80")];
        assert_eq!(of(&lines), [pair("caller", "k"), pair("client", "203.0.113.7")]);
        assert_eq!(
            of(&[("x-team", b"caf\xc3\xa9")]),
            [pair("team", "caf\u{e9}"), pair("client", "127.0.0.1")]
        );
    }

    #[test]
    fn what_is_empty_or_unreadable_counts_as_absent() {
        assert_eq!(of(&[("x-api-key", b""), ("x-team", b"\xff")]), [pair("client", "127.0.0.1")]);
        assert_eq!(of(&[("x-forwarded-for", b"\xff")]), [pair("client", "127.0.0.1")]);
    }

    #[test]
    fn mistakes_in_a_mapping_are_told() {
        for wrong in ["", "x-user", "=user", "x user=user", "x-user=", "x-user=n", "x-user=a\nb"] {
            assert!(wrong.parse::<FromHeader>().is_err(), "{wrong}");
        }
    }
}
