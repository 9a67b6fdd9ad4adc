//! The operator's policy, and checks of URLs and addresses against it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use process::number;
use url::{Host, ParseError, Url};

use crate::{Network, is_globally_routable};

/// The maximum length of a URL in bytes, before normalization.
pub const MAX_URL_LENGTH: usize = 2048;

/// Where requests to client-supplied URLs may go. The default is https to the public internet.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Allow webhooks with `http://` URLs, not only https. Default: no. Example:
    /// `DELIVERY_WEBHOOK_ALLOW_HTTP=yes`.
    #[arg(long, env = "DELIVERY_WEBHOOK_ALLOW_HTTP")]
    pub allow_http: bool,

    /// Allow webhooks in a network that is not on the public internet, e.g. `10.1.0.0/16`;
    /// repeatable. Default: none. Example: `10.1.0.0/16`.
    #[arg(
        long = "allow-network",
        env = "DELIVERY_WEBHOOK_ALLOW_NETWORK",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub allowed_networks: Vec<Network>,

    /// Deny webhooks on a port; repeatable. Port 0 is always denied. Default: none. Example: `25`.
    #[arg(
        long = "deny-port",
        env = "DELIVERY_WEBHOOK_DENY_PORT",
        value_name = "PORT",
        value_delimiter = ',',
        value_parser = number::within((1_u16, u16::MAX), 25)
    )]
    pub denied_ports: Vec<u16>,
}

/// Why an address is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("address {0} is not on the public internet: use a public host")]
    Address(IpAddr),
    #[error("port {0} is not allowed: use another, such as 443")]
    Port(u16),
}

/// Why a URL is denied. The messages are shown to the client that sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("has {0} bytes: at most {MAX_URL_LENGTH} are allowed")]
    TooLong(usize),
    #[error("is not an absolute url: write it as https://host/path")]
    NotAbsolute,
    #[error("contains white space or a control character: percent-encode it")]
    Character,
    #[error("is not a url ({0}): write it as https://host/path")]
    Malformed(#[source] ParseError),
    #[error("has an ipv6 zone: write the address without `%` and what follows")]
    Zone,
    #[error("is not https: only https:// is allowed")]
    Insecure,
    #[error("contains a user name or password: remove the part before `@`")]
    Credentials,
    #[error("contains a fragment: remove `#` and what follows")]
    Fragment,
    #[error("host `{0}` is not a domain name: labels of 1 to 63 characters, 253 in all")]
    HostName(String),
    #[error("host `{0}` is this machine: use a host on the public internet")]
    Localhost(String),
    #[error(transparent)]
    Denied(#[from] Denied),
}

impl Policy {
    /// Parses an absolute URL and checks everything that needs no name resolution. The addresses
    /// of a host name are checked for each connection.
    pub fn check_url(&self, text: &str) -> Result<Url, UrlError> {
        let url = parse(text)?;
        if url.scheme() == "http" && !self.allow_http {
            return Err(UrlError::Insecure);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(UrlError::Fragment);
        }

        match url.host() {
            None => return Err(UrlError::NotAbsolute),
            Some(Host::Ipv4(ip)) => self.check_ip(IpAddr::V4(ip))?,
            Some(Host::Ipv6(ip)) => self.check_ip(IpAddr::V6(ip))?,
            Some(Host::Domain(name)) => self.check_name(name)?,
        }
        if let Some(port) = url.port_or_known_default() {
            self.check_port(port)?;
        }
        Ok(url)
    }

    /// Checks an IP address. Allowed networks are matched against the address itself (unmapped if
    /// IPv4-mapped), not against an IPv4 address embedded by a tunnel.
    pub fn check_ip(&self, ip: IpAddr) -> Result<(), Denied> {
        let allowed = self
            .allowed_networks
            .iter()
            .any(|network| network.contains(ip));
        if allowed || is_globally_routable(ip) {
            Ok(())
        } else {
            Err(Denied::Address(ip.to_canonical()))
        }
    }

    /// Checks the address and port of a socket.
    pub fn check_addr(&self, addr: SocketAddr) -> Result<(), Denied> {
        self.check_ip(addr.ip())?;
        self.check_port(addr.port())
    }

    fn check_port(&self, port: u16) -> Result<(), Denied> {
        if port == 0 || self.denied_ports.contains(&port) {
            return Err(Denied::Port(port));
        }
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), UrlError> {
        let without_dot = name.strip_suffix('.').unwrap_or(name);
        let valid = without_dot.len() <= 253
            && without_dot
                .split('.')
                .all(|label| (1..=63).contains(&label.len()));
        if !valid {
            return Err(UrlError::HostName(name.to_owned()));
        }

        // RFC 6761 section 6.3: these names always resolve to loopback.
        let local = without_dot == "localhost" || without_dot.ends_with(".localhost");
        let loopback = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        if local && !loopback.iter().any(|ip| self.check_ip(*ip).is_ok()) {
            return Err(UrlError::Localhost(name.to_owned()));
        }
        Ok(())
    }
}

/// Parses a URL by the WHATWG rules, without their tolerance for malformed texts.
fn parse(text: &str) -> Result<Url, UrlError> {
    if text.len() > MAX_URL_LENGTH {
        return Err(UrlError::TooLong(text.len()));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(UrlError::Character);
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(UrlError::NotAbsolute);
    };
    let is_http = ["http", "https"]
        .iter()
        .any(|allowed| scheme.eq_ignore_ascii_case(allowed));
    if !is_http || rest.starts_with(['/', '\\']) {
        return Err(UrlError::NotAbsolute);
    }
    Url::parse(text).map_err(|error| match error {
        ParseError::InvalidIpv6Address if text.contains('%') => UrlError::Zone,
        error => UrlError::Malformed(error),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::{prelude::*, test_runner::TestRunner};

    use super::*;

    fn permissive() -> Policy {
        Policy {
            allow_http: true,
            allowed_networks: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
            denied_ports: vec![25],
        }
    }

    fn error(policy: &Policy, text: &str) -> String {
        policy.check_url(text).unwrap_err().to_string()
    }

    #[test]
    fn a_public_https_url_is_accepted() {
        for text in [
            "https://example.com",
            "HTTPS://EXAMPLE.com:8443/hook?a=b",
            "https://example.com./",
            "https://bücher.example/",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]:443/",
            "https://notlocalhost/",
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
                "port 0 is not allowed: use another, such as 443",
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
    fn every_form_of_a_private_address_is_denied() {
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
                "address 127.0.0.1 is not on the public internet: use a public host",
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
    fn an_operator_can_allow_networks_and_deny_ports() {
        for text in [
            "http://127.0.0.1:8080/",
            "http://2130706433/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::1]/",
            "http://localhost/",
        ] {
            assert!(permissive().check_url(text).is_ok(), "{text}");
        }
        assert_eq!(
            error(&permissive(), "http://10.0.0.1/"),
            "address 10.0.0.1 is not on the public internet: use a public host"
        );
        assert_eq!(
            error(&permissive(), "http://example.com:25/"),
            "port 25 is not allowed: use another, such as 443"
        );
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
            ("8.8.8.8:25", Err(Denied::Port(25))),
            ("8.8.8.8:0", Err(Denied::Port(0))),
            (
                "10.0.0.1:443",
                Err(Denied::Address(Ipv4Addr::new(10, 0, 0, 1).into())),
            ),
            ("[::1]:80", Ok(())),
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
            r"https?://([a-z0-9]{1,8}\.){1,2}[a-z]{2,6}(:(443|8[0-9]{3}))?([/?][a-z0-9%/]{0,8})?",
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
}
