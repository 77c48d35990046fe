//! What describes a request, as its service says it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use headworks_agent::client_address::{AddressText, Client, Source};
use http::{HeaderMap, header};
use smallvec::SmallVec;

/// Attributes of few requests are more; the list then grows on the heap.
const FEW: usize = 8;
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The attributes of a request: keys with values that are borrowed from it. Where a key is pushed twice, its first value counts.
#[derive(Debug, Default)]
pub struct AttributeList<'r>(SmallVec<[(&'r str, Value<'r>); FEW]>);

#[derive(Debug)]
enum Value<'r> {
    Borrowed(&'r str),
    Address(AddressText),
}

impl<'r> AttributeList<'r> {
    /// Adds an attribute.
    pub fn push(&mut self, key: &'r str, value: &'r str) {
        self.0.push((key, Value::Borrowed(value)));
    }

    /// Adds the value of a header, if the request has it and it is text. An empty one counts as none, as it does everywhere.
    pub fn push_header(&mut self, key: &'r str, headers: &'r HeaderMap, name: impl header::AsHeaderName) {
        if let Some(value) =
            headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
        {
            self.push(key, value);
        }
    }

    /// Adds the address of the client. `peer` is who connected; of `X-Forwarded-For` is believed what so many proxies of one's
    /// own wrote, so 0 unless all requests come through them (see [`Client::of`]). Nothing is added where nobody is known.
    pub fn push_client(
        &mut self,
        key: &'r str,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
        trusted_proxies: usize,
    ) {
        let lines = headers.get_all(FORWARDED_FOR).iter().map(header::HeaderValue::as_bytes);
        let Some(client) = Client::of(peer, lines, trusted_proxies) else { return };
        if client.source == Source::Fallback {
            warn_once(trusted_proxies);
        }
        self.0.push((key, Value::Address(client.address.text())));
    }

    /// As the limiter takes them.
    pub(crate) fn pairs(&self) -> SmallVec<[(&str, &str); FEW]> {
        let text = |value| match value {
            &Value::Borrowed(text) => text,
            Value::Address(text) => text.as_str(),
        };
        self.0.iter().map(|(key, value)| (*key, text(value))).collect()
    }
}

/// All requests of a proxy that tells no addresses have one key; whoever runs it should know.
fn warn_once(trusted_proxies: usize) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Relaxed) {
        tracing::warn!(
            trusted_proxies,
            "a request tells no client address in X-Forwarded-For behind the trusted proxies: it counts for the peer that sent it"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_absent_or_no_text_is_no_attribute() {
        let mut headers = HeaderMap::new();
        headers.insert("x-caller", "web".parse().unwrap());
        headers.insert("x-broken", header::HeaderValue::from_bytes(b"\xff").unwrap());
        let mut attributes = AttributeList::default();
        for (key, name) in [("caller", "x-caller"), ("broken", "x-broken"), ("absent", "x-absent")] {
            attributes.push_header(key, &headers, name);
        }
        assert_eq!(attributes.pairs()[..], [("caller", "web")]);
    }

    #[test]
    fn a_client_is_told_by_trusted_proxies_alone() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, "192.0.2.66".parse().unwrap());
        headers.append(FORWARDED_FOR, "203.0.113.7:5544".parse().unwrap());
        let peer = Some(IpAddr::from([10, 0, 0, 1]));
        let mut attributes = AttributeList::default();
        attributes.push_client("direct", peer, &headers, 0);
        attributes.push_client("forwarded", peer, &headers, 1);
        attributes.push_client("further", peer, &headers, 3);
        attributes.push_client("nobody", None, &headers, 3);
        let expected = [("direct", "10.0.0.1"), ("forwarded", "203.0.113.7"), ("further", "10.0.0.1")];
        assert_eq!(attributes.pairs()[..], expected);
    }
}
