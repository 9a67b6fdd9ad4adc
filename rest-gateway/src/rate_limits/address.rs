//! Where a request comes from: the connection's other end or, if that is a proxy of the operator's,
//! whom it speaks for (`Forwarded`, RFC 7239, or `X-Forwarded-For`).

use std::net::{IpAddr, SocketAddr};

use egress::Network;
use http::{HeaderMap, HeaderName, header::FORWARDED};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The other end of a request's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The nearest address that is no trusted proxy's: what comes before it in the headers, anybody
/// may have written. Where two headers differ, one of them came from outside, and neither is
/// believed.
pub(super) fn of_client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_trusted = |address| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(peer) {
        return peer;
    }
    let nearest = |hops: Vec<Option<IpAddr>>| {
        let mut nearest = peer;
        for hop in hops.into_iter().rev() {
            // What can't be read may be anything: whoever wrote it is as far as can be seen.
            let Some(hop) = hop else { break };
            nearest = hop;
            if !is_trusted(hop) {
                break;
            }
        }
        nearest
    };
    let forwarded = texts(headers, &FORWARDED)
        .map(|text| nearest(split(&text, ',').map(forwarded_for).collect()));
    let x_forwarded_for =
        texts(headers, &X_FORWARDED_FOR).map(|text| nearest(text.split(',').map(node).collect()));
    match (forwarded, x_forwarded_for) {
        (Some(address), None) | (None, Some(address)) => address,
        (Some(one), Some(other)) if one == other => one,
        (None, None) | (Some(_), Some(_)) => peer,
    }
}

/// All values of a header as one list; none if it is not there.
fn texts(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let texts: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// The `for` of an element of `Forwarded`.
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

/// An address, perhaps in quotes or brackets, perhaps with a port.
fn node(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let text = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text);
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let with_port = || text.parse().map(|addr: SocketAddr| addr.ip());
    let address: IpAddr = bare.parse().or_else(|_| with_port()).ok()?;
    Some(address.to_canonical())
}

/// Splits a text, but not within quotes.
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
        let address = of_client(peer.parse().unwrap(), &headers(pairs), &trusted);
        assert_eq!(address, expected.parse::<IpAddr>().unwrap(), "{pairs:?}");
    }

    #[test]
    fn who_is_no_trusted_proxy_speaks_for_itself() {
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
    fn the_nearest_that_is_not_trusted_is_the_client() {
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
    fn what_makes_no_sense_is_nobodys_word() {
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
            ("forwarded", "for=192.0.2.9, host=\"open, for=1.1.1.1"),
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
    fn two_headers_must_say_the_same() {
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
        fn nothing_makes_the_readers_panic(
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
            let _ = of_client(PROXY.parse().unwrap(), &headers, &trusted);
        }

        /// Whatever stands before what the trusted proxy wrote, it changes nothing.
        #[test]
        fn nobody_can_speak_for_another(text in "[ -~]{0,60}", client: [u8; 4]) {
            let client = IpAddr::from(client);
            let trusted = networks(&["10.0.0.1"]);
            for (name, own) in [
                ("x-forwarded-for", client.to_string()),
                ("forwarded", format!("for={client}")),
            ] {
                let two = headers(&[(name, &text), (name, &own)]);
                let address = of_client(PROXY.parse().unwrap(), &two, &trusted);
                if name == "x-forwarded-for" && !trusted[0].contains(client) {
                    prop_assert_eq!(address, client);
                } else if !trusted[0].contains(client) {
                    // A quote that is left open takes the rest with it.
                    prop_assert!(address == client || address.to_string() == PROXY);
                }
            }
        }
    }
}
