//! A range of IP addresses in CIDR notation.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A range of addresses: `127.0.0.0/8`, `::1/128`, or a single address without a prefix.
///
/// An IPv4 network contains the IPv4-mapped IPv6 forms of its addresses too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether the address is in this network.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_ipv4() == self.first.is_ipv4() && masked(ip, self.prefix) == self.first
    }

    /// Converts an IPv4-mapped network: `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
    fn unmapped(self) -> Self {
        match (self.first.to_canonical(), self.prefix.checked_sub(96)) {
            // Not for a network that is IPv4 already: its prefix is at most 32.
            (IpAddr::V4(first), Some(prefix)) => Self {
                first: IpAddr::V4(first),
                prefix,
            },
            _ => self,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| {
            format!("`{text}` is not an IP address or a network such as 10.0.0.0/8")
        })?;

        let max = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => max,
            Some(prefix) => prefix.parse().map_err(|_| {
                format!("`{prefix}` is not a prefix length: a whole number from 0 to {max}")
            })?,
        };
        if prefix > max {
            return Err(format!("prefix length {prefix} is too long: at most {max}"));
        }

        let first = masked(address, prefix);
        let network = Self { first, prefix };
        if network.first != address {
            return Err(format!(
                "{address}/{prefix} has bits set beyond its prefix: write {network}"
            ));
        }
        Ok(network.unmapped())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

/// The first address of the network with this prefix that an address is in.
fn masked(ip: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or_default();
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or_default();
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_contains_the_addresses_that_share_its_prefix() {
        for (text, inside, outside) in [
            ("127.0.0.0/8", "127.255.255.255", "128.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("100.64.0.0/10", "100.127.255.255", "100.128.0.0"),
            ("0.0.0.0/0", "255.255.255.255", "::"),
            ("::1/128", "::1", "::"),
            ("fd00::/8", "fdff::1", "fe00::"),
            ("::/0", "ffff::", "1.2.3.4"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::ffff:1.2.3.4"),
            ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"),
        ] {
            assert!(network(text).contains(ip(inside)), "{text} {inside}");
            assert!(!network(text).contains(ip(outside)), "{text} {outside}");
        }
    }

    #[test]
    fn an_invalid_network_is_rejected_with_the_expected_form() {
        for (text, message) in [
            (
                "",
                "`` is not an IP address or a network such as 10.0.0.0/8",
            ),
            (
                "localhost/8",
                "`localhost/8` is not an IP address or a network such as 10.0.0.0/8",
            ),
            (
                "fe80::1%eth0",
                "`fe80::1%eth0` is not an IP address or a network such as 10.0.0.0/8",
            ),
            (
                "10.0.0.0/",
                "`` is not a prefix length: a whole number from 0 to 32",
            ),
            (
                "::/300",
                "`300` is not a prefix length: a whole number from 0 to 128",
            ),
            ("10.0.0.0/33", "prefix length 33 is too long: at most 32"),
            (
                "10.1.0.0/8",
                "10.1.0.0/8 has bits set beyond its prefix: write 10.0.0.0/8",
            ),
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert_eq!(error, message, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_displayed_network_parses_to_itself(bits: u32, prefix in 0u8..=32) {
            let first = masked(Ipv4Addr::from_bits(bits).into(), prefix);
            let network = network(&format!("{first}/{prefix}"));
            prop_assert_eq!(network.to_string().parse(), Ok(network));
        }

        #[test]
        fn an_address_is_outside_if_a_bit_of_the_prefix_differs(
            bits: u128, prefix in 0u8..=128, flipped in 0u32..128,
        ) {
            // 2000::/3, so that no address is IPv4-mapped.
            let bits = bits >> 3 | 1 << 125;
            let first = masked(Ipv6Addr::from_bits(bits).into(), prefix);
            let network = network(&format!("{first}/{prefix}"));
            let other = Ipv6Addr::from_bits(bits ^ (1 << (127 - flipped)));

            prop_assert_eq!(
                network.contains(IpAddr::V6(other)),
                flipped >= u32::from(prefix)
            );
        }
    }
}
