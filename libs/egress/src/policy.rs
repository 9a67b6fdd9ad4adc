//! The operator's policy, and checks of URLs and addresses against it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use process::number;
use url::{Host, ParseError, Url};

use crate::{
    Network,
    routable::{embedded_v4, is_globally_routable},
};

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
    #[arg(long = "allow-network", env = "DELIVERY_WEBHOOK_ALLOW_NETWORK")]
    #[arg(value_name = "CIDR", value_delimiter = ',')]
    pub allowed_networks: Vec<Network>,

    /// Deny webhooks in a network that is on the public internet, e.g. hosts of your own; repeatable.
    /// Prevails over `--allow-network`. Default: none. Example: `192.0.2.0/24`.
    #[arg(long = "deny-network", env = "DELIVERY_WEBHOOK_DENY_NETWORK")]
    #[arg(value_name = "CIDR", value_delimiter = ',')]
    pub denied_networks: Vec<Network>,

    /// Allow webhooks on a port other than 80 and 443; repeatable. On loopback, once allowed, every
    /// port is. Default: none. Example: `8443`.
    #[arg(
        long = "allow-port",
        env = "DELIVERY_WEBHOOK_ALLOW_PORT",
        value_name = "PORT"
    )]
    #[arg(value_delimiter = ',', value_parser = number::within(1_u16, u16::MAX, 8443))]
    pub allowed_ports: Vec<u16>,
}

/// Why an address is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("has address {0}, which is not allowed: use a host on the public internet")]
    Address(IpAddr),
    #[error("has port {0}, which is not allowed: use 443")]
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

        let port = url.port_or_known_default().ok_or(UrlError::NotAbsolute)?;
        match url.host() {
            None => return Err(UrlError::NotAbsolute),
            Some(Host::Ipv4(ip)) => self.check_addr((ip, port).into())?,
            Some(Host::Ipv6(ip)) => self.check_addr((ip, port).into())?,
            Some(Host::Domain(name)) => {
                let is_loopback = self.check_name(name)?;
                self.check_port(port, is_loopback)?;
            }
        }
        Ok(url)
    }

    /// Checks the address and port of a socket.
    pub fn check_addr(&self, addr: SocketAddr) -> Result<(), Denied> {
        self.check_ip(addr.ip())?;
        self.check_port(addr.port(), addr.ip().to_canonical().is_loopback())
    }

    /// Checks an IP address. Allowed networks are matched against the address itself (unmapped if
    /// IPv4-mapped), not against an IPv4 address embedded by a tunnel; denied ones against both.
    fn check_ip(&self, ip: IpAddr) -> Result<(), Denied> {
        let is_in = |networks: &[Network], ip| networks.iter().any(|network| network.contains(ip));
        let is_denied = is_in(&self.denied_networks, ip)
            || embedded_v4(ip).is_some_and(|ip| is_in(&self.denied_networks, ip));
        if !is_denied && (is_in(&self.allowed_networks, ip) || is_globally_routable(ip)) {
            Ok(())
        } else {
            Err(Denied::Address(ip.to_canonical()))
        }
    }

    fn check_port(&self, port: u16, is_loopback: bool) -> Result<(), Denied> {
        const DEFAULT_PORTS: [u16; 2] = [80, 443];
        let is_allowed = DEFAULT_PORTS.contains(&port) || self.allowed_ports.contains(&port);
        if port != 0 && (is_allowed || is_loopback) {
            Ok(())
        } else {
            Err(Denied::Port(port))
        }
    }

    /// Checks a host name. Returns whether it is a name of loopback, which must be allowed.
    fn check_name(&self, name: &str) -> Result<bool, UrlError> {
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
        Ok(local)
    }
}

/// The host and port of a URL, in one form for all ways to write them.
pub fn host_and_port(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    match url.host() {
        Some(Host::Ipv4(ip)) => SocketAddr::new(ip.into(), port).to_string(),
        Some(Host::Ipv6(ip)) => SocketAddr::new(IpAddr::V6(ip).to_canonical(), port).to_string(),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            format!("{name}:{port}")
        }
        None => String::new(),
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
mod tests;
