//! The keys by which requests are counted: peers, and credentials.

use std::net::{IpAddr, Ipv6Addr};

use sha2::{Digest, Sha256};

/// The key of a peer's address; of IPv6 only the /64 network, the usual assignment to one client.
pub fn peer_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The limiter's key of an API key with a secret. Guessed secrets do not use up the client's quota:
/// every pair has its own.
pub fn credentials_key(api_key: &str, api_secret: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(Sha256::digest(api_key))
        .chain_update(api_secret)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_ipv4_address_or_an_ipv6_network() {
        for (address, key) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(peer_key(address).to_string(), key);
        }
    }

    #[test]
    fn every_pair_of_key_and_secret_has_a_key_of_its_own() {
        let key = credentials_key("key", "secret");
        assert_eq!(key, credentials_key("key", "secret"));
        for (api_key, secret) in [("key", "other"), ("other", "secret"), ("keys", "ecret")] {
            assert_ne!(key, credentials_key(api_key, secret));
        }
    }
}
