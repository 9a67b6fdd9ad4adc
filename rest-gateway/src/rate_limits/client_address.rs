//! The client's address: the peer's or, if the peer is a trusted proxy, the one in `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};

use egress::Network;
use http::{HeaderMap, HeaderName};

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The last hop that is not a trusted proxy: any client may have forged the hops before it.
pub(crate) fn resolve(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address| trusted.iter().any(|network| network.contains(address));
    let mut last = peer.to_canonical();
    let values = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let hops = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    for hop in hops {
        if !is_trusted(last) {
            break;
        }
        // The hop that reported a malformed one is the last with a known address.
        let Some(address) = parse(hop) else { break };
        last = address;
    }
    last
}

/// Parses an address, optionally in brackets, optionally with a port.
fn parse(hop: &[u8]) -> Option<IpAddr> {
    let hop = str::from_utf8(hop).ok()?.trim();
    let inner = hop
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let with_port = || hop.parse().map(|addr: SocketAddr| addr.ip());
    let address: IpAddr = inner.unwrap_or(hop).parse().or_else(|_| with_port()).ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::{collection, prelude::*};

    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn headers(values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| {
            let value = HeaderValue::from_str(value).unwrap();
            (X_FORWARDED_FOR, value)
        });
        values.collect()
    }

    #[track_caller]
    fn check(peer: &str, values: &[&str], expected: &str) {
        let trusted = networks(&["10.0.0.0/8", "fd00::/8"]);
        let address = resolve(peer.parse().unwrap(), &headers(values), &trusted);
        assert_eq!(address, expected.parse::<IpAddr>().unwrap(), "{values:?}");
    }

    #[test]
    fn a_header_of_an_untrusted_peer_is_ignored() {
        check("192.0.2.1", &["192.0.2.9"], "192.0.2.1");
        check("::ffff:192.0.2.1", &["192.0.2.9"], "192.0.2.1");
        check("::ffff:10.0.0.1", &["192.0.2.9"], "192.0.2.9");
        check(PROXY, &[], PROXY);
    }

    #[test]
    fn the_last_untrusted_hop_is_the_client() {
        for (value, expected) in [
            ("192.0.2.9", "192.0.2.9"),
            ("1.1.1.1, 192.0.2.9", "192.0.2.9"),
            ("1.1.1.1,192.0.2.9:8080 , 10.9.9.9", "192.0.2.9"),
            ("2001:db8::9", "2001:db8::9"),
            ("[2001:db8::9]", "2001:db8::9"),
            ("[2001:db8::9]:80", "2001:db8::9"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ] {
            check(PROXY, &[value], expected);
        }
        check(PROXY, &["1.1.1.1", "192.0.2.9"], "192.0.2.9");
    }

    #[test]
    fn a_malformed_hop_ends_the_search() {
        for value in [
            "",
            "192.0.2.9, unknown",
            "192.0.2.9,",
            "999.0.2.9",
            "[192.0.2.9",
        ] {
            check(PROXY, &[value], PROXY);
        }
        check(PROXY, &["1.1.1.1, ?, 10.0.0.7"], "10.0.0.7");
    }

    proptest! {
        #[test]
        fn no_header_makes_the_parser_panic(values in collection::vec(any::<Vec<u8>>(), 0..4)) {
            let values = values.iter().filter_map(|value| HeaderValue::from_bytes(value).ok());
            let headers = values.map(|value| (X_FORWARDED_FOR, value)).collect();

            let _ = resolve(PROXY.parse().unwrap(), &headers, &networks(&["10.0.0.0/8"]));
        }

        /// Text before the trusted proxy's own element yields no address of the client's choice.
        #[test]
        fn a_client_cannot_forge_another_address(text in "[ -~]{0,60}", client: [u8; 4]) {
            let client = IpAddr::from(client);
            let trusted = networks(&["10.0.0.1"]);
            prop_assume!(!trusted[0].contains(client));

            let forged = headers(&[&text, &client.to_string()]);

            prop_assert_eq!(resolve(PROXY.parse().unwrap(), &forged, &trusted), client);
        }
    }
}
