//! The URL of a core, and the socket addresses behind it.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

use http::Uri;
use url::{Host, Url};

const DEFAULT_PORT: u16 = 50051;

/// `http://HOST:PORT` of one core, or of several behind one host name; `https` for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreUrl {
    host: Host,
    port: u16,
    is_tls: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a core url: write it as http://HOST:PORT, or https://HOST:PORT for TLS")]
pub struct InvalidCoreUrl(String);

impl CoreUrl {
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host name or address; an IPv6 address is without brackets.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Domain(name) => name.clone(),
            Host::Ipv4(ip) => ip.to_string(),
            Host::Ipv6(ip) => ip.to_string(),
        }
    }

    /// The address, unless the host is a name.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.host {
            Host::Domain(_) => None,
            Host::Ipv4(ip) => Some(ip.into()),
            Host::Ipv6(ip) => Some(ip.into()),
        }
    }

    /// Whether the host is this machine, so that traffic does not leave it.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.to_canonical().is_loopback(),
        }
    }
}

impl FromStr for CoreUrl {
    type Err = InvalidCoreUrl;

    fn from_str(text: &str) -> Result<Self, InvalidCoreUrl> {
        let invalid = || InvalidCoreUrl(text.to_owned());
        let url = Url::parse(text).map_err(|_| invalid())?;
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(invalid()),
        };
        let is_origin = url.username().is_empty()
            && url.password().is_none()
            && matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_origin {
            return Err(invalid());
        }
        // `Url` drops an explicit port 80 or 443.
        let port = text.parse::<Uri>().map_err(|_| invalid())?.port_u16();
        Ok(Self {
            host: url.host().ok_or_else(invalid)?.to_owned(),
            port: port.unwrap_or(DEFAULT_PORT),
            is_tls,
        })
    }
}

impl fmt::Display for CoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// One socket address of a core, with its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreAddr {
    pub(crate) url: Arc<CoreUrl>,
    pub(crate) addr: SocketAddr,
}

impl CoreAddr {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// The URL, followed by the address if the URL has a host name.
impl fmt::Display for CoreAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.url.ip() {
            Some(_) => write!(f, "{}", self.url),
            None => write!(f, "{} at {}", self.url, self.addr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_a_host_and_an_optional_port() {
        for (text, expected) in [
            ("http://127.0.0.1:50051", "http://127.0.0.1:50051"),
            ("http://127.0.0.1:50051/", "http://127.0.0.1:50051"),
            ("https://core.example", "https://core.example:50051"),
            ("https://core.example:443", "https://core.example:443"),
            ("http://core:80", "http://core:80"),
            ("http://[::1]:1", "http://[::1]:1"),
            ("http://[::1]", "http://[::1]:50051"),
        ] {
            assert_eq!(text.parse::<CoreUrl>().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn any_other_text_is_rejected_with_the_expected_form() {
        for text in [
            "",
            "core",
            "core:50051",
            "ftp://core:1",
            "http://",
            "http://core:1/path",
            "http://core:1?query",
            "http://user:pass@core:1",
            "http://user@core:1",
            "http://:pass@core:1",
            "http://core:1#fragment",
            "http://core:70000",
        ] {
            let error = text.parse::<CoreUrl>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "`{text}` is not a core url: write it as http://HOST:PORT, or https://HOST:PORT for TLS"
                )
            );
        }
    }

    #[test]
    fn an_address_is_shown_with_the_url_whose_host_name_it_was_found_for() {
        for (url, expected) in [
            ("http://127.0.0.1:50051", "http://127.0.0.1:50051"),
            (
                "https://core.example",
                "https://core.example:50051 at 127.0.0.1:50051",
            ),
        ] {
            let core = CoreAddr {
                url: Arc::new(url.parse().unwrap()),
                addr: "127.0.0.1:50051".parse().unwrap(),
            };
            assert_eq!(core.to_string(), expected);
        }
    }

    #[test]
    fn loopback_addresses_and_localhost_are_loopback() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9:1", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]:1", true),
            ("http://localhost:1", true),
            ("http://192.0.2.1:1", false),
            ("http://localhost.example:1", false),
        ] {
            assert_eq!(
                text.parse::<CoreUrl>().unwrap().is_loopback(),
                expected,
                "{text}"
            );
        }
    }
}
