//! The client's address: the peer's or, if the peer is a trusted proxy, the one in its header
//! `Forwarded` (RFC 7239) or `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};

use egress::Network;
use http::{HeaderMap, HeaderName, header::FORWARDED};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The last hop that is not a trusted proxy: any client may have forged the hops before it. If
/// the two headers yield different addresses, one may be forged, and both are ignored.
pub(crate) fn resolve(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_trusted = |address| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(peer) {
        return peer;
    }
    let last_untrusted = |hops: Vec<Option<IpAddr>>| {
        let mut last = peer;
        for hop in hops.into_iter().rev() {
            // The hop that reported the malformed one is the last with a known address.
            let Some(hop) = hop else { break };
            last = hop;
            if !is_trusted(hop) {
                break;
            }
        }
        last
    };
    let forwarded = joined_values(headers, &FORWARDED)
        .map(|text| last_untrusted(split(&text, ',').map(forwarded_for).collect()));
    let x_forwarded_for = joined_values(headers, &X_FORWARDED_FOR)
        .map(|text| last_untrusted(text.split(',').map(node).collect()));
    match (forwarded, x_forwarded_for) {
        (Some(address), None) | (None, Some(address)) => address,
        (Some(one), Some(other)) if one == other => one,
        (None, None) | (Some(_), Some(_)) => peer,
    }
}

/// All values of a header as one list; none if it is absent.
fn joined_values(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let texts: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// The only `for` parameter of an element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut nodes = split(element, ';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value)
    });
    match (nodes.next(), nodes.next()) {
        (Some(only), None) => node(only),
        _ => None,
    }
}

/// Parses an address, optionally in quotes or brackets, optionally with a port.
fn node(text: &str) -> Option<IpAddr> {
    let unquoted = within(text.trim(), '"', '"');
    let bare = within(unquoted, '[', ']');
    let with_port = || unquoted.parse().map(|addr: SocketAddr| addr.ip());
    let address: IpAddr = bare.parse().or_else(|_| with_port()).ok()?;
    Some(address.to_canonical())
}

/// The text between two characters, or the unchanged text if it is not between them.
fn within(text: &str, open: char, close: char) -> &str {
    let inner = text
        .strip_prefix(open)
        .and_then(|rest| rest.strip_suffix(close));
    inner.unwrap_or(text)
}

/// Splits a text at separators outside of quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |character| {
        let escapes = is_quoted && character == '\\' && !is_escaped;
        if character == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = escapes;
        character == separator && !is_quoted
    })
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

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[track_caller]
    fn check(peer: &str, pairs: &[(&'static str, &str)], expected: &str) {
        let trusted = networks(&["10.0.0.0/8", "fd00::/8"]);
        let address = resolve(peer.parse().unwrap(), &headers(pairs), &trusted);
        assert_eq!(address, expected.parse::<IpAddr>().unwrap(), "{pairs:?}");
    }

    #[test]
    fn headers_of_an_untrusted_peer_are_ignored() {
        check(
            "192.0.2.1",
            &[("x-forwarded-for", "192.0.2.9")],
            "192.0.2.1",
        );
        check(
            "::ffff:192.0.2.1",
            &[("forwarded", "for=192.0.2.9")],
            "192.0.2.1",
        );
        check(
            "::ffff:10.0.0.1",
            &[("x-forwarded-for", "192.0.2.9")],
            "192.0.2.9",
        );
        check(PROXY, &[], PROXY);
    }

    #[test]
    fn the_last_untrusted_hop_is_the_client() {
        for (name, value, expected) in [
            ("x-forwarded-for", "192.0.2.9", "192.0.2.9"),
            ("x-forwarded-for", "1.1.1.1, 192.0.2.9", "192.0.2.9"),
            (
                "x-forwarded-for",
                "1.1.1.1,192.0.2.9:8080 , 10.9.9.9",
                "192.0.2.9",
            ),
            ("x-forwarded-for", "2001:db8::9", "2001:db8::9"),
            ("x-forwarded-for", "[2001:db8::9]:80", "2001:db8::9"),
            ("x-forwarded-for", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("forwarded", "for=192.0.2.9", "192.0.2.9"),
            (
                "forwarded",
                "For=\"192.0.2.9:80\";proto=https;by=10.0.0.1",
                "192.0.2.9",
            ),
            (
                "forwarded",
                "for=1.1.1.1, proto=http;for=\"[2001:db8::9]:4711\"",
                "2001:db8::9",
            ),
            (
                "forwarded",
                "for=192.0.2.9;host=\"a,for=1.1.1.1\", for=fd00::1",
                "192.0.2.9",
            ),
            (
                "forwarded",
                r#"for=192.0.2.9;host="a\",for=1.1.1.1", for=fd00::1"#,
                "192.0.2.9",
            ),
        ] {
            check(PROXY, &[(name, value)], expected);
        }
        let twice = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "192.0.2.9"),
        ];
        check(PROXY, &twice, "192.0.2.9");
    }

    #[test]
    fn a_malformed_hop_ends_the_search() {
        for (name, value) in [
            ("x-forwarded-for", ""),
            ("x-forwarded-for", "192.0.2.9, unknown"),
            ("x-forwarded-for", "192.0.2.9,"),
            ("x-forwarded-for", "999.0.2.9"),
            ("forwarded", "for=unknown"),
            ("forwarded", "for=_hidden"),
            ("forwarded", "proto=https"),
            ("forwarded", "for=1.1.1.1;for=192.0.2.9"),
            ("forwarded", "for=\"192.0.2.9"),
            ("forwarded", "for=192.0.2.9, host=\"unclosed, for=1.1.1.1"),
        ] {
            check(PROXY, &[(name, value)], PROXY);
        }
        check(
            PROXY,
            &[("x-forwarded-for", "1.1.1.1, ?, 10.0.0.7")],
            "10.0.0.7",
        );
    }

    #[test]
    fn two_headers_must_agree() {
        let same = [
            ("x-forwarded-for", "1.1.1.1, 192.0.2.9"),
            ("forwarded", "for=192.0.2.9"),
        ];
        check(PROXY, &same, "192.0.2.9");
        let other = [
            ("x-forwarded-for", "192.0.2.9"),
            ("forwarded", "for=1.1.1.1"),
        ];
        check(PROXY, &other, PROXY);
    }

    proptest! {
        #[test]
        fn no_header_makes_the_parsers_panic(
            values in collection::vec(any::<Vec<u8>>(), 0..4),
            is_forwarded in any::<bool>(),
        ) {
            let name = if is_forwarded { FORWARDED } else { X_FORWARDED_FOR };
            let mut headers = HeaderMap::new();
            for value in values {
                if let Ok(value) = HeaderValue::from_bytes(&value) {
                    headers.append(name.clone(), value);
                }
            }

            let trusted = networks(&["10.0.0.0/8"]);
            let _ = resolve(PROXY.parse().unwrap(), &headers, &trusted);
        }

        /// Text before the trusted proxy's own element yields no address of the client's choice.
        #[test]
        fn a_client_cannot_forge_another_address(text in "[ -~]{0,60}", client: [u8; 4]) {
            let client = IpAddr::from(client);
            let trusted = networks(&["10.0.0.1"]);
            for (name, own) in [
                ("x-forwarded-for", client.to_string()),
                ("forwarded", format!("for={client}")),
            ] {
                let two = headers(&[(name, &text), (name, &own)]);
                let address = resolve(PROXY.parse().unwrap(), &two, &trusted);
                if name == "x-forwarded-for" && !trusted[0].contains(client) {
                    prop_assert_eq!(address, client);
                } else if !trusted[0].contains(client) {
                    // After an unclosed quote, the rest of the header belongs to its value.
                    prop_assert!(address == client || address.to_string() == PROXY);
                }
            }
        }
    }
}
