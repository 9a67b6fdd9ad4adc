//! Tests of the policy on URLs, addresses and ports.

use std::cell::Cell;

use proptest::{prelude::*, test_runner::TestRunner};

use super::*;

fn permissive() -> Policy {
    Policy {
        allow_http: true,
        allowed_networks: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
        allowed_ports: vec![8443],
        ..Policy::default()
    }
}

fn error(policy: &Policy, text: &str) -> String {
    policy.check_url(text).unwrap_err().to_string()
}

#[test]
fn a_public_https_url_is_accepted() {
    for text in [
        "https://example.com",
        "HTTPS://EXAMPLE.com:443/hook?a=b",
        "https://example.com./",
        "https://bücher.example/",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]:443/",
        "https://notlocalhost/",
        "https://[2606:4700::1111]:80/",
    ] {
        assert_eq!(
            Policy::default().check_url(text),
            Ok(Url::parse(text).unwrap()),
            "{text}"
        );
    }
}

#[test]
fn an_invalid_url_is_rejected_with_a_fix() {
    let absolute = "is not an absolute url: write it as https://host/path";
    let characters = "contains white space or a control character: percent-encode it";
    for (text, message) in [
        ("", absolute),
        ("/hook", absolute),
        ("//example.com/", absolute),
        ("example.com", absolute),
        ("https:example.com", absolute),
        ("https:///example.com", absolute),
        (r"https://\example.com", absolute),
        ("ftp://example.com/", absolute),
        ("file:///etc/passwd", absolute),
        ("javascript:alert(1)", absolute),
        (" https://example.com", characters),
        ("https://exa\nmple.com", characters),
        ("https://example.com/a b", characters),
        (
            "http://example.com/",
            "is not https: only https:// is allowed",
        ),
        (
            "https://u@example.com/",
            "contains a user name or password: remove the part before `@`",
        ),
        (
            "https://:p@example.com/",
            "contains a user name or password: remove the part before `@`",
        ),
        (
            "https://example.com/#",
            "contains a fragment: remove `#` and what follows",
        ),
        (
            "https://[fe80::1%25eth0]/",
            "has an ipv6 zone: write the address without `%` and what follows",
        ),
        (
            "https://[fe80::x]/",
            "is not a url (invalid IPv6 address): write it as https://host/path",
        ),
        (
            "https://1.2.3.4.5/",
            "is not a url (invalid IPv4 address): write it as https://host/path",
        ),
        (
            "https://example.com:99999/",
            "is not a url (invalid port number): write it as https://host/path",
        ),
        (
            "https://a..b/",
            "host `a..b` is not a domain name: labels of 1 to 63 characters, 253 in all",
        ),
        (
            "https://example.com:0/",
            "has port 0, which is not allowed: use 443",
        ),
    ] {
        assert_eq!(error(&Policy::default(), text), message, "{text}");
    }

    let long = format!("https://example.com/{}", "a".repeat(2029));
    assert_eq!(
        error(&Policy::default(), &long),
        "has 2049 bytes: at most 2048 are allowed"
    );
    assert!(Policy::default().check_url(&long[..2048]).is_ok());
}

#[test]
fn every_form_of_a_loopback_address_is_denied() {
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "１２７.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ] {
        assert_eq!(
            error(&Policy::default(), &format!("https://{host}/")),
            "has address 127.0.0.1, which is not allowed: use a host on the public internet",
            "{host}"
        );
    }
    for host in ["localhost", "LOCALHOST", "localhost.", "a.b.localhost"] {
        let message = error(&Policy::default(), &format!("https://{host}/"));
        assert_eq!(
            message,
            format!(
                "host `{}` is this machine: use a host on the public internet",
                host.to_lowercase()
            )
        );
    }
}

#[test]
fn an_operator_can_allow_networks_and_ports() {
    for text in [
        "http://127.0.0.1:8080/",
        "http://2130706433:1/",
        "http://[::ffff:127.0.0.1]:8080/",
        "http://[::1]:8080/",
        "http://localhost:8080/",
        "https://example.com:8443/",
        "https://8.8.8.8:8443/",
    ] {
        assert!(permissive().check_url(text).is_ok(), "{text}");
    }
    for (text, message) in [
        (
            "http://10.0.0.1/",
            "has address 10.0.0.1, which is not allowed: use a host on the public internet",
        ),
        (
            "http://example.com:25/",
            "has port 25, which is not allowed: use 443",
        ),
        (
            "https://8.8.8.8:22/",
            "has port 22, which is not allowed: use 443",
        ),
        (
            "http://127.0.0.1:0/",
            "has port 0, which is not allowed: use 443",
        ),
    ] {
        assert_eq!(error(&permissive(), text), message, "{text}");
    }
    let message = "has port 8443, which is not allowed: use 443";
    assert_eq!(
        error(&Policy::default(), "https://example.com:8443/"),
        message
    );
}

#[test]
fn a_denied_network_prevails_over_an_allowed_one_and_includes_its_tunnels() {
    let policy = Policy {
        denied_networks: vec!["127.0.0.2".parse().unwrap(), "8.8.8.0/24".parse().unwrap()],
        ..permissive()
    };
    for (address, is_allowed) in [
        ("127.0.0.1", true),
        ("127.0.0.2", false),
        ("8.8.4.4", true),
        ("8.8.8.8", false),
        ("::ffff:8.8.8.8", false),
        ("64:ff9b::808:808", false),
        ("2002:808:808::1", false),
    ] {
        let ip: IpAddr = address.parse().unwrap();
        let expected = if is_allowed {
            Ok(())
        } else {
            Err(Denied::Address(ip.to_canonical()))
        };
        assert_eq!(policy.check_addr((ip, 443).into()), expected, "{address}");
    }
}

#[test]
fn a_tunnel_to_an_allowed_network_is_denied() {
    for text in ["64:ff9b::7f00:1", "2002:7f00:1::"] {
        let ip: IpAddr = text.parse().unwrap();
        assert_eq!(permissive().check_ip(ip), Err(Denied::Address(ip)));
    }
}

#[test]
fn a_socket_is_checked_by_its_address_and_its_port() {
    for (text, expected) in [
        ("8.8.8.8:443", Ok(())),
        ("8.8.8.8:8443", Ok(())),
        ("8.8.8.8:25", Err(Denied::Port(25))),
        ("8.8.8.8:0", Err(Denied::Port(0))),
        (
            "10.0.0.1:443",
            Err(Denied::Address(Ipv4Addr::new(10, 0, 0, 1).into())),
        ),
        ("[::1]:80", Ok(())),
        ("[::1]:25", Ok(())),
    ] {
        assert_eq!(
            permissive().check_addr(text.parse().unwrap()),
            expected,
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn every_form_of_an_address_gives_the_same_result(bits: u32) {
        let ip = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = ip.octets();
        let expected = Policy::default().check_ip(IpAddr::V4(ip)).map_err(UrlError::Denied);

        for host in [
            format!("{ip}"),
            format!("{bits}"),
            format!("{bits:#x}"),
            format!("0{bits:o}"),
            format!("{a:#x}.0{b:o}.{}", u32::from(c) << 8 | u32::from(d)),
            format!("[::ffff:{ip}]"),
        ] {
            let result = Policy::default().check_url(&format!("https://{host}/")).map(drop);
            prop_assert_eq!(&result, &expected, "{}", host);
        }
    }
}

#[test]
fn any_text_is_either_denied_or_a_safe_url() {
    let texts = prop_oneof![
        r"(https?:[/\\]{0,3})?[a-z0-9.@:#%\[\]/\\\PC]{0,40}",
        r"https?://([a-z0-9]{1,8}\.){1,2}[a-z]{2,6}(:(80|443|8443))?([/?][a-z0-9%/]{0,8})?",
        r"https?://(0x[0-9a-f]{8}|[0-9]{9}|[1-9][0-9]?(\.[0-9]{1,2}){3}|\[2[0-9a-f]{3}::[0-9a-f]{1,4}\])/?",
    ];
    let (cases, accepted) = (Cell::new(0), Cell::new(0));
    TestRunner::default()
        .run(&texts, |text| {
            cases.set(cases.get() + 1);
            let Ok(url) = permissive().check_url(&text) else {
                return Ok(());
            };
            accepted.set(accepted.get() + 1);
            prop_assert!(matches!(url.scheme(), "http" | "https"));
            prop_assert!(url.username().is_empty() && url.password().is_none());
            prop_assert!(url.fragment().is_none());
            match url.host() {
                Some(Host::Ipv4(ip)) => prop_assert!(permissive().check_ip(ip.into()).is_ok()),
                Some(Host::Ipv6(ip)) => prop_assert!(permissive().check_ip(ip.into()).is_ok()),
                Some(Host::Domain(name)) => prop_assert!(!name.is_empty()),
                None => prop_assert!(false, "no host in {url}"),
            }
            Ok(())
        })
        .unwrap();
    let (cases, accepted) = (cases.get(), accepted.get());
    assert!(3 * accepted >= cases, "{accepted} of {cases} accepted");
}

#[test]
fn the_host_and_port_of_a_url_have_one_form() {
    for (url, expected) in [
        ("https://Shop.example./a", "shop.example:443"),
        ("http://shop.example", "shop.example:80"),
        ("https://0x7f.1:8443", "127.0.0.1:8443"),
        ("https://[::ffff:127.0.0.1]", "127.0.0.1:443"),
        ("https://[2001:db8:0:0::1]", "[2001:db8::1]:443"),
    ] {
        assert_eq!(host_and_port(&url.parse().unwrap()), expected, "{url}");
    }
}
