//! The address of the client that a request is about, as a value to limit by. Pure.
//!
//! Whoever connects is known; whom it speaks for is what it says, in `X-Forwarded-For`, and counts only if it is a trusted proxy. Of
//! the addresses in there, each proxy has added the one that connected to it at the end, so from the end on those of trusted proxies
//! are passed over: the first other one is the client. What is before that the client may have made up.

use std::net::IpAddr;
use std::str::FromStr;

use headworks_agent::client_address::ClientAddress;

/// Most addresses of proxies that are passed over.
const MAX_HOPS: usize = 16;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                begin_alike(own.to_bits().into(), other.to_bits().into(), 128 - 32 + u32::from(self.bits))
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                begin_alike(own.to_bits(), other.to_bits(), self.bits.into())
            }
            _ => false,
        }
    }
}

fn begin_alike(a: u128, b: u128, bits: u32) -> bool {
    (a ^ b).checked_shr(128 - bits).is_none_or(|differ| differ == 0)
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let advice = || format!("{text:?} is no network: write it as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7");
        let address: IpAddr = address.parse().map_err(|_| advice())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).ok().filter(|bits| *bits <= most).ok_or_else(advice)?;
        Ok(Self { address, bits })
    }
}

/// Which proxies are believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust(Vec<Network>);

impl Trust {
    pub(crate) fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Whom a request comes from that `peer` sent, over a Unix socket if it has no address, with these `X-Forwarded-For` in the order
    /// of their lines. The second value is true where a trusted proxy said what is no address, and stands for its client itself.
    pub(super) fn client<'h>(
        &self,
        peer: Option<IpAddr>,
        forwarded: impl DoubleEndedIterator<Item = &'h str>,
    ) -> (Option<IpAddr>, bool) {
        let mut client = peer.map(|peer| peer.to_canonical());
        if self.0.is_empty() {
            return (client, false);
        }
        let hops =
            forwarded.rev().flat_map(|line| line.rsplit(',')).map(str::trim).filter(|hop| !hop.is_empty());
        for hop in hops.take(MAX_HOPS) {
            // Who gets to the folder of the socket is trusted to be a proxy of this machine.
            if client.is_some_and(|client| !self.trusts(client)) {
                break;
            }
            match address(hop) {
                Some(address) => client = Some(address),
                None => return (client, true),
            }
        }
        (client, false)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// An address as proxies write it, with a port or without.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        // An IPv6 address without brackets has no port.
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => address,
            _ => text,
        },
    };
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The text that stands for a client: an IPv4 address, or the network of an IPv6 address.
pub(super) fn value(address: IpAddr) -> String {
    ClientAddress::of(address).to_string()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn trust(networks: &[&str]) -> Trust {
        Trust::new(networks.iter().map(|network| network.parse().unwrap()).collect())
    }

    fn client(trust: &Trust, peer: &str, lines: &[&str]) -> Option<String> {
        trust.client(peer.parse().ok(), lines.iter().copied()).0.map(value)
    }

    fn is(told: &str) -> Option<String> {
        Some(told.to_owned())
    }

    #[test]
    fn without_trusted_proxies_nobody_says_whom_it_speaks_for() {
        let nobody = trust(&[]);
        assert_eq!(client(&nobody, "192.0.2.1", &["203.0.113.7"]), is("192.0.2.1"));
        assert_eq!(client(&nobody, "a socket", &["203.0.113.7"]), None);
    }

    #[test]
    fn a_trusted_proxy_says_whom_it_speaks_for_with_or_without_a_port() {
        let one = trust(&["127.0.0.0/8"]);
        for (said, meant) in [
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.7:5544", "203.0.113.7"),
            ("[2001:db8::1]:443", "2001:db8::/64"),
            ("[2001:db8::1]", "2001:db8::/64"),
            ("2001:DB8::1", "2001:db8::/64"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("[::ffff:203.0.113.7]:80", "203.0.113.7"),
            ("198.51.100.9, 203.0.113.7", "203.0.113.7"),
            (" 203.0.113.7 ,", "203.0.113.7"),
        ] {
            assert_eq!(client(&one, "127.0.0.1", &[said]), is(meant), "{said}");
            assert_eq!(client(&one, "::ffff:127.0.0.1", &[said]), is(meant), "{said}");
            assert_eq!(client(&one, "a socket", &[said]), is(meant), "{said}");
        }
        assert_eq!(client(&one, "127.0.0.1", &["198.51.100.9", "203.0.113.7"]), is("203.0.113.7"));
        assert_eq!(client(&one, "192.0.2.1", &["203.0.113.7"]), is("192.0.2.1"));
    }

    #[test]
    fn proxies_are_passed_over_as_long_as_they_are_trusted() {
        let two = trust(&["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"]);
        let lines = ["1.1.1.1, 203.0.113.7", "10.1.2.3, 2001:db8:1::9"];
        assert_eq!(client(&two, "127.0.0.1", &lines), is("203.0.113.7"));
        assert_eq!(client(&two, "127.0.0.1", &["10.1.2.3"]), is("10.1.2.3"));
        let many = vec!["10.1.2.3"; 10_000].join(",");
        assert_eq!(client(&two, "127.0.0.1", &[&format!("203.0.113.7,{many}")]), is("10.1.2.3"));
    }

    #[test]
    fn a_proxy_that_says_what_is_no_address_stands_for_its_client() {
        let one = trust(&["127.0.0.0/8"]);
        for garbage in ["unknown", "203.0.113", "[2001:db8::1", "203.0.113.7:5544:1", &"x".repeat(10_000)] {
            let told = one.client("127.0.0.1".parse().ok(), [garbage].into_iter());
            assert_eq!((told.0.map(value), told.1), (is("127.0.0.1"), true), "{garbage}");
        }
        assert!(!one.client("127.0.0.1".parse().ok(), [""].into_iter()).1);
    }

    #[test]
    fn a_network_is_an_address_and_how_much_of_it_counts() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("0.0.0.0/0", "8.8.8.8") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "2001:db8::1") && contains("192.0.2.7", "192.0.2.7"));
        assert!(!contains("192.0.2.7", "192.0.2.6") && !contains("2001:db8::/127", "2001:db8::2"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "localhost", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let of = |n: u16| value(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, n, n, 3, n)));
        assert!((0..1000).all(|n| of(n) == "2001:db8:1:2::/64"));
    }
}
