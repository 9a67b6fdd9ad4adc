//! What the operator permits, and the judgement of URLs and addresses by it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, ParseError, Url};

use crate::{Network, is_globally_routable};

/// The longest accepted URL, in bytes as written.
pub const MAX_URL_LENGTH: usize = 2048;

/// What requests on a client's behalf may reach. The default is https to the public internet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether plain `http://` is accepted.
    pub allow_http: bool,
    /// Networks that may be called although they are not on the public internet.
    pub allowed_networks: Vec<Network>,
    /// Ports that may not be called. Port 0 never may.
    pub refused_ports: Vec<u16>,
}

/// Why an address may not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("address {0} is not on the public internet: name a host that is")]
    Address(IpAddr),
    #[error("port {0} may not be used: choose another, such as 443")]
    Port(u16),
}

/// Why a URL may not be called. The texts are for the client that sent it.
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
    #[error("contains a user name or password: leave out what is before `@`")]
    Credentials,
    #[error("contains a fragment: leave out `#` and what follows")]
    Fragment,
    #[error("host `{0}` is not a domain name: labels of 1 to 63 characters, 253 in all")]
    HostName(String),
    #[error("host `{0}` is this machine: name a host on the public internet")]
    Localhost(String),
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Policy {
    /// Reads an absolute URL and judges all that can be judged without resolving its host; a
    /// name is judged by its addresses when it is called.
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

    /// Judges an address by itself. Allowed networks are compared with the address as it is
    /// (IPv4-mapped ones unmapped), not with one tunnelled inside it.
    pub fn check_ip(&self, ip: IpAddr) -> Result<(), Refused> {
        let allowed = self
            .allowed_networks
            .iter()
            .any(|network| network.contains(ip));
        if allowed || is_globally_routable(ip) {
            Ok(())
        } else {
            Err(Refused::Address(ip.to_canonical()))
        }
    }

    /// Judges what a socket is about to connect to.
    pub fn check_addr(&self, addr: SocketAddr) -> Result<(), Refused> {
        self.check_ip(addr.ip())?;
        self.check_port(addr.port())
    }

    fn check_port(&self, port: u16) -> Result<(), Refused> {
        if port == 0 || self.refused_ports.contains(&port) {
            return Err(Refused::Port(port));
        }
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), UrlError> {
        let relative = name.strip_suffix('.').unwrap_or(name);
        let sound = relative.len() <= 253
            && relative
                .split('.')
                .all(|label| (1..=63).contains(&label.len()));
        if !sound {
            return Err(UrlError::HostName(name.to_owned()));
        }

        // RFC 6761 section 6.3: these names are the loopback interface wherever they are resolved.
        let local = relative == "localhost" || relative.ends_with(".localhost");
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

/// The WHATWG reading of a URL, without its tolerance for texts that are not quite one.
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
    let known = ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    if !known || rest.starts_with(['/', '\\']) {
        return Err(UrlError::NotAbsolute);
    }
    Url::parse(text).map_err(|error| match error {
        ParseError::InvalidIpv6Address if text.contains('%') => UrlError::Zone,
        error => UrlError::Malformed(error),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demo() -> Policy {
        Policy {
            allow_http: true,
            allowed_networks: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
            refused_ports: vec![25],
        }
    }

    fn refusal(policy: &Policy, text: &str) -> String {
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
    fn a_url_that_is_not_one_is_told_what_would_be_right() {
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
                "contains a user name or password: leave out what is before `@`",
            ),
            (
                "https://:p@example.com/",
                "contains a user name or password: leave out what is before `@`",
            ),
            (
                "https://example.com/#",
                "contains a fragment: leave out `#` and what follows",
            ),
            (
                "https://[fe80::1%25eth0]/",
                "has an ipv6 zone: write the address without `%` and what follows",
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
                "port 0 may not be used: choose another, such as 443",
            ),
        ] {
            assert_eq!(refusal(&Policy::default(), text), message, "{text}");
        }

        let long = format!("https://example.com/{}", "a".repeat(2029));
        assert_eq!(
            refusal(&Policy::default(), &long),
            "has 2049 bytes: at most 2048 are allowed"
        );
        assert!(Policy::default().check_url(&long[..2048]).is_ok());
    }

    #[test]
    fn every_spelling_of_a_private_address_is_refused() {
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
                refusal(&Policy::default(), &format!("https://{host}/")),
                "address 127.0.0.1 is not on the public internet: name a host that is",
                "{host}"
            );
        }
        for host in ["localhost", "LOCALHOST", "localhost.", "a.b.localhost"] {
            let message = refusal(&Policy::default(), &format!("https://{host}/"));
            assert_eq!(
                message,
                format!(
                    "host `{}` is this machine: name a host on the public internet",
                    host.to_lowercase()
                )
            );
        }
    }

    #[test]
    fn an_operator_may_allow_networks_and_refuse_ports() {
        for text in [
            "http://127.0.0.1:8080/",
            "http://2130706433/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::1]/",
            "http://localhost/",
        ] {
            assert!(demo().check_url(text).is_ok(), "{text}");
        }
        assert_eq!(
            refusal(&demo(), "http://10.0.0.1/"),
            "address 10.0.0.1 is not on the public internet: name a host that is"
        );
        assert_eq!(
            refusal(&demo(), "http://example.com:25/"),
            "port 25 may not be used: choose another, such as 443"
        );
    }

    #[test]
    fn a_tunnel_to_an_allowed_network_stays_closed() {
        for text in ["64:ff9b::7f00:1", "2002:7f00:1::"] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(demo().check_ip(ip), Err(Refused::Address(ip)));
        }
    }

    #[test]
    fn a_socket_is_judged_by_its_address_and_its_port() {
        for (text, expected) in [
            ("8.8.8.8:443", Ok(())),
            ("8.8.8.8:25", Err(Refused::Port(25))),
            ("8.8.8.8:0", Err(Refused::Port(0))),
            (
                "10.0.0.1:443",
                Err(Refused::Address(Ipv4Addr::new(10, 0, 0, 1).into())),
            ),
            ("[::1]:80", Ok(())),
        ] {
            assert_eq!(demo().check_addr(text.parse().unwrap()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_spelling_of_an_address_changes_its_judgement(bits: u32) {
            let ip = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = ip.octets();
            let expected = Policy::default().check_ip(IpAddr::V4(ip)).map_err(UrlError::Refused);

            for host in [
                format!("{ip}"),
                format!("{bits}"),
                format!("{bits:#x}"),
                format!("0{bits:o}"),
                format!("{a:#x}.0{b:o}.{}", u32::from(c) << 8 | u32::from(d)),
                format!("[::ffff:{ip}]"),
            ] {
                let judged = Policy::default().check_url(&format!("https://{host}/")).map(drop);
                prop_assert_eq!(&judged, &expected, "{}", host);
            }
        }

        #[test]
        fn any_text_is_either_refused_or_a_url_without_traps(
            text in r"(https?:[/\\]{0,3})?[a-z0-9.@:#%\[\]/\\\PC]{0,40}",
        ) {
            if let Ok(url) = demo().check_url(&text) {
                prop_assert!(matches!(url.scheme(), "http" | "https"));
                prop_assert!(url.username().is_empty() && url.password().is_none());
                prop_assert!(url.fragment().is_none());
                match url.host() {
                    Some(Host::Ipv4(ip)) => prop_assert!(demo().check_ip(ip.into()).is_ok()),
                    Some(Host::Ipv6(ip)) => prop_assert!(demo().check_ip(ip.into()).is_ok()),
                    Some(Host::Domain(name)) => prop_assert!(!name.is_empty()),
                    None => prop_assert!(false, "no host in {url}"),
                }
            }
        }
    }
}
