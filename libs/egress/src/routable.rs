//! Distinguishes public from special-purpose addresses by the IANA registries.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::LazyLock,
};

use crate::Network;

/// The networks that the registries list as not globally reachable, and the address of Azure's
/// platform services.
static NOT_GLOBAL: LazyLock<Vec<Network>> = LazyLock::new(|| {
    let networks = [
        "0.0.0.0/8",       // this network
        "10.0.0.0/8",      // private
        "100.64.0.0/10",   // carrier-grade NAT
        "127.0.0.0/8",     // loopback
        "168.63.129.16",   // Azure's platform services
        "169.254.0.0/16",  // link-local, cloud metadata
        "172.16.0.0/12",   // private
        "192.0.0.0/24",    // protocol assignments
        "192.0.2.0/24",    // documentation
        "192.88.99.0/24",  // 6to4 relays
        "192.168.0.0/16",  // private
        "198.18.0.0/15",   // benchmarking
        "198.51.100.0/24", // documentation
        "203.0.113.0/24",  // documentation
        "224.0.0.0/4",     // multicast
        "240.0.0.0/4",     // reserved, broadcast
        "2001::/23",       // protocol assignments, Teredo
        "2001:db8::/32",   // documentation
        "3fff::/20",       // documentation
    ];
    let parse = |text: &str| text.parse().expect("the text is a network");
    networks.into_iter().map(parse).collect()
});

/// Whether an address is on the public internet.
///
/// IPv4-mapped, 6to4 and NAT64 addresses are classified by the embedded IPv4 address.
pub(crate) fn is_globally_routable(ip: IpAddr) -> bool {
    let ip = embedded_v4(ip).unwrap_or(ip);
    let may_be_global = match ip {
        IpAddr::V4(_) => true,
        // 2000::/3, what is allocated for global unicast.
        IpAddr::V6(ip) => ip.to_bits() >> 125 == 0b001,
    };
    may_be_global && !NOT_GLOBAL.iter().any(|network| network.contains(ip))
}

/// The IPv4 address to which packets for `ip` go: mapped, 6to4 (`2002::/16`, RFC 3056) or
/// NAT64 (`64:ff9b::/96`, RFC 6052).
pub(crate) fn embedded_v4(ip: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(ip) = ip else {
        return None;
    };
    let embedded = |high: u16, low: u16| {
        IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
    };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x2002, high, low, ..]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(embedded(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::{prelude::*, sample};

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn neighbours(first: IpAddr, last: IpAddr) -> impl Iterator<Item = IpAddr> {
        let (before, after) = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => (
                first.to_bits().checked_sub(1).map(v4),
                last.to_bits().checked_add(1).map(v4),
            ),
            (IpAddr::V6(first), IpAddr::V6(last)) => (
                first.to_bits().checked_sub(1).map(v6),
                last.to_bits().checked_add(1).map(v6),
            ),
            _ => panic!("{first} and {last} are of different families"),
        };
        before.into_iter().chain(after)
    }

    fn v4(bits: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(bits))
    }

    fn v6(bits: u128) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(bits))
    }

    #[test]
    fn special_purpose_ranges_have_the_bounds_of_their_registry() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("168.63.129.16", "168.63.129.16"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
            ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            let (first, last) = (ip(first), ip(last));
            assert!(!is_globally_routable(first), "{first}");
            assert!(!is_globally_routable(last), "{last}");
            for neighbour in neighbours(first, last) {
                assert!(is_globally_routable(neighbour), "{neighbour}");
            }
        }
    }

    #[test]
    fn an_embedded_ipv4_address_determines_the_result() {
        for (text, expected) in [
            ("::ffff:8.8.8.8", true),
            ("::ffff:127.0.0.1", false),
            ("2002:808:808::1", true),
            ("2002:7f00:1::", false),
            ("2002:a9fe:a9fe::", false),
            ("64:ff9b::8.8.8.8", true),
            ("64:ff9b::10.0.0.1", false),
            // The local-use NAT64 prefix is not the well-known one.
            ("64:ff9b:1::8.8.8.8", false),
            ("::8.8.8.8", false),
        ] {
            assert_eq!(is_globally_routable(ip(text)), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_embedding_of_an_ipv4_address_gives_the_same_result(bits: u32) {
            let inner = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = inner.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));

            for outer in [
                inner.to_ipv6_mapped(),
                Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            ] {
                prop_assert_eq!(
                    is_globally_routable(IpAddr::V6(outer)),
                    is_globally_routable(IpAddr::V4(inner))
                );
            }
        }

        #[test]
        fn addresses_that_the_standard_library_calls_local_are_not_routable(
            (first, length) in sample::select(&[
                (0x0a00_0000, 8), (0x7f00_0000, 8), (0xa9fe_0000, 16), (0xac10_0000, 12),
                (0xc0a8_0000, 16), (0xe000_0000, 4), (0xc000_0200, 24), (0xc633_6400, 24),
                (0xcb00_7100, 24), (0xffff_ffff, 32), (0, 32),
            ]),
            (first6, length6) in sample::select(&[(0xfc00_u16, 7), (0xfe80, 10), (0xff00, 8)]),
            bits: u32,
            bits6: u128,
        ) {
            let v4 = Ipv4Addr::from_bits(first | bits.checked_shr(length).unwrap_or(0));
            let v6 = Ipv6Addr::from_bits(u128::from(first6) << 112 | bits6 >> length6);

            prop_assert!(
                v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                    || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified()
            );
            prop_assert!(!is_globally_routable(IpAddr::V4(v4)), "{v4}");
            prop_assert!(
                v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast()
            );
            prop_assert!(!is_globally_routable(IpAddr::V6(v6)), "{v6}");
        }
    }
}
