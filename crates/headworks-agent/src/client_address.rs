//! The address of a client, as the key of a limit.
//!
//! A client that can choose its key has as many budgets as it likes, or spends those of others. So a forwarding header is
//! believed only as far as proxies of one's own wrote it; ports, which change with every connection, are cut off; and IPv6
//! addresses go by their /64, since whoever has one has all of it.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The longest text of an address that can be read: brackets, an IPv6 address with an IPv4 tail, and a port.
const LONGEST: usize = 64;
/// Fits `ffff:ffff:ffff:ffff::/64`, and every IPv4 address.
const TEXT: usize = 32;

/// Whom a request is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// The address.
    pub address: ClientAddress,
    /// How it was found.
    pub source: Source,
}

/// How a client's address was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It is that of the peer, since no proxy is trusted.
    Peer,
    /// The trusted proxy that is furthest out told it.
    Forwarded,
    /// It is that of the peer, since the header is missing, too short or unreadable. All who come through that proxy then share a
    /// key: somebody should be warned.
    Fallback,
}

/// The address of a client in the form that limits go by. Two that are one client's are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

impl Client {
    /// The client behind so many trusted proxies, each of which adds the address of its own peer to the end of
    /// `X-Forwarded-For`. `peer` is who connected here, the proxy that is nearest; a Unix socket knows none. `forwarded` are the
    /// header's lines as they came; what stands further left than the trusted proxies wrote is never looked at.
    ///
    /// With no trusted proxy, and wherever the header can't be used, it is the peer.
    pub fn of<'h>(
        peer: Option<IpAddr>,
        forwarded: impl DoubleEndedIterator<Item = &'h [u8]>,
        trusted_proxies: usize,
    ) -> Option<Self> {
        let told = trusted_proxies.checked_sub(1).and_then(|nearer| hop(forwarded, nearer));
        match (told, trusted_proxies) {
            (Some(address), _) => {
                Some(Self { address: ClientAddress::of(address), source: Source::Forwarded })
            }
            (None, 0) => Some(Self { address: ClientAddress::of(peer?), source: Source::Peer }),
            (None, _) => Some(Self { address: ClientAddress::of(peer?), source: Source::Fallback }),
        }
    }
}

/// The address before so many nearer ones, counted from the end of the last line.
fn hop<'h>(lines: impl DoubleEndedIterator<Item = &'h [u8]>, nearer: usize) -> Option<IpAddr> {
    let hops = lines.rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
    // Empty elements of a list count for nothing (RFC 9110, 5.6.1).
    hops.map(<[u8]>::trim_ascii).filter(|hop| !hop.is_empty()).nth(nearer).and_then(parse)
}

/// An address with or without a port, in brackets or not.
fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST)?;
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(with_port).or_else(bracketed)
}

impl ClientAddress {
    /// The client at this address: an IPv4 address in IPv6 notation is the IPv4 address, and all of a /64 are one client.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
            }
            canonical => Self(canonical),
        }
    }

    /// As limits compare it: `203.0.113.7`, or `2001:db8::/64`.
    pub fn text(self) -> AddressText {
        let mut text = AddressText { bytes: [0; TEXT], length: 0 };
        // Cannot fail: the longest text fits.
        let _ = write!(text, "{self}");
        text
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(address) => write!(f, "{address}/64"),
        }
    }
}

/// The text of an address, without an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressText {
    bytes: [u8; TEXT],
    length: usize,
}

impl AddressText {
    /// The text.
    pub fn as_str(&self) -> &str {
        // Only whole texts were written.
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for AddressText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn client(peer: &str, lines: &[&str], trusted_proxies: usize) -> (String, Source) {
        let peer = Some(peer.parse().unwrap());
        let client = Client::of(peer, lines.iter().map(|line| line.as_bytes()), trusted_proxies).unwrap();
        (client.address.to_string(), client.source)
    }

    fn forwarded(lines: &[&str]) -> String {
        let (address, source) = client(PROXY, lines, 1);
        assert_eq!(source, Source::Forwarded, "{lines:?}");
        address
    }

    #[test]
    fn without_a_trusted_proxy_a_header_means_nothing() {
        for line in ["203.0.113.7", "198.51.100.9, 203.0.113.7", "unknown"] {
            assert_eq!(client("192.0.2.1", &[line], 0), ("192.0.2.1".to_owned(), Source::Peer));
        }
    }

    #[test]
    fn ports_and_brackets_are_cut_off() {
        for text in ["203.0.113.7:5544", "203.0.113.7", " 203.0.113.7 "] {
            assert_eq!(forwarded(&[text]), "203.0.113.7");
        }
        for text in ["[2001:db8::1]:443", "[2001:db8::1]", "2001:db8::1", "2001:DB8::1"] {
            assert_eq!(forwarded(&[text]), "2001:db8::/64");
        }
    }

    #[test]
    fn the_furthest_trusted_proxy_tells_and_nothing_left_of_it_does() {
        assert_eq!(forwarded(&["192.0.2.66, 203.0.113.7"]), "203.0.113.7");
        assert_eq!(forwarded(&["192.0.2.66", "203.0.113.7"]), "203.0.113.7");
        assert_eq!(forwarded(&["192.0.2.66, 203.0.113.7, ,"]), "203.0.113.7");
        let two = |lines: &[&str]| client(PROXY, lines, 2);
        assert_eq!(
            two(&["192.0.2.66, 203.0.113.7, 10.0.0.2"]),
            ("203.0.113.7".to_owned(), Source::Forwarded)
        );
        assert_eq!(two(&["203.0.113.7", "10.0.0.2"]), ("203.0.113.7".to_owned(), Source::Forwarded));
    }

    #[test]
    fn what_cannot_be_read_leaves_the_peer() {
        let long = "1".repeat(10_000);
        for lines in [&[][..], &[""], &["unknown"], &["_hidden"], &[&long], &["203.0.113.7, fe80::1%eth0"]] {
            assert_eq!(client(PROXY, lines, 1), (PROXY.to_owned(), Source::Fallback), "{lines:?}");
        }
        // Whoever reaches the inner proxy by itself has not come past the outer one.
        assert_eq!(client(PROXY, &["203.0.113.7"], 2), (PROXY.to_owned(), Source::Fallback));
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_what_a_proxy_added() {
        let lines: [&[u8]; 2] = [b"192.0.2.66", b"\xff\xfe, 203.0.113.7"];
        let client = Client::of(None, lines.into_iter(), 1).unwrap();
        assert_eq!(client.address.to_string(), "203.0.113.7");
    }

    #[test]
    fn nobody_is_known_behind_a_unix_socket() {
        assert_eq!(Client::of(None, std::iter::empty(), 0), None);
        assert_eq!(Client::of(None, [&b"unknown"[..]].into_iter(), 1), None);
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address() {
        assert_eq!(forwarded(&["::ffff:203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("::ffff:203.0.113.7", &[], 0).0, "203.0.113.7");
    }

    #[test]
    fn all_of_a_64_are_one_client_and_their_neighbours_another() {
        let all = (0..1000_u16).map(|host| Ipv6Addr::new(0x2001, 0xdb8, 0, 7, host, 1, host, host));
        let keys: std::collections::HashSet<_> =
            all.map(|address| ClientAddress::of(address.into())).collect();
        assert_eq!(keys.len(), 1);
        assert!(!keys.contains(&ClientAddress::of("2001:db8:0:8::1".parse().unwrap())));
    }

    #[test]
    fn the_longest_texts_fit() {
        for text in ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "255.255.255.255", "1:0:0:ffff::", "::"] {
            let address = ClientAddress::of(text.parse().unwrap());
            assert_eq!(address.text().as_str(), address.to_string());
        }
    }
}
