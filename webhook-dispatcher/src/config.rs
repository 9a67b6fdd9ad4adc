//! Every setting of the dispatcher: flags, environment and defaults.

use std::{fmt, io, net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use clap::Parser;
use core_client::{CoreConfig, CoreUrl};
use egress::{Network, Policy};
use http::HeaderName;
use process::secret_file;

/// The environment variable of the one setting that has no flag: command lines are public.
const CLIENT_SECRET: &str = "DELIVERY_CLIENT_SECRET";

/// Sends the signed notifications that core owes to webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(version)]
pub struct Config {
    /// Address of a core, e.g. `http://127.0.0.1:50051`; once for every core. A host name stands
    /// for every address it has, and is looked up again and again.
    #[arg(
        long = "core-url",
        env = "DELIVERY_CORE_URL",
        value_name = "URL",
        value_delimiter = ','
    )]
    pub core_urls: Vec<CoreUrl>,

    #[command(flatten)]
    pub core: CoreConfig,

    /// Where `/healthz` and `/readyz` are served over HTTP; nowhere unless given.
    #[arg(long, env = "DELIVERY_DISPATCHER_HEALTH_LISTEN", value_name = "ADDR")]
    pub health_listen: Option<SocketAddr>,

    /// Key of an API client with the scope `notifications`.
    #[arg(long, env = "DELIVERY_CLIENT_KEY", value_name = "KEY")]
    pub client_key: Option<String>,

    /// File with the API client's secret, readable by its owner alone. The secret may be in
    /// `DELIVERY_CLIENT_SECRET` instead.
    #[arg(long, env = "DELIVERY_CLIENT_SECRET_FILE", value_name = "PATH")]
    pub client_secret_file: Option<PathBuf>,

    /// The API client's secret, where it is at hand; goes before the file and the environment.
    #[arg(skip)]
    pub client_secret: Option<ClientSecret>,

    /// The platform's name, as in the header `X-<Name>-Signature`.
    #[arg(
        long,
        env = "DELIVERY_PLATFORM_NAME",
        value_name = "NAME",
        default_value = "Service"
    )]
    pub platform_name: String,

    /// Send to `http://` too.
    #[arg(long, env = "DELIVERY_WEBHOOK_ALLOW_HTTP")]
    pub allow_http: bool,

    /// Send into a network that is not on the public internet, e.g. `10.1.0.0/16`; repeatable.
    #[arg(
        long = "allow-network",
        env = "DELIVERY_WEBHOOK_ALLOW_NETWORK",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub allow_networks: Vec<Network>,

    /// Never send to a port; repeatable.
    #[arg(
        long = "refuse-port",
        env = "DELIVERY_WEBHOOK_REFUSE_PORT",
        value_name = "PORT",
        value_delimiter = ','
    )]
    pub refuse_ports: Vec<u16>,

    /// PEM file with certificate authorities to trust beside the system's where notifications
    /// are sent; repeatable.
    #[arg(
        long = "ca-file",
        env = "DELIVERY_CA_FILE",
        value_name = "PATH",
        value_delimiter = ','
    )]
    pub ca_files: Vec<PathBuf>,

    /// How many notifications may be on their way at once.
    #[arg(
        long,
        env = "DELIVERY_MAX_IN_FLIGHT",
        value_name = "COUNT",
        default_value_t = Config::MAX_IN_FLIGHT
    )]
    pub max_in_flight: NonZeroU32,

    /// The longest one send may take, from DNS to the end of the answer.
    #[arg(
        long,
        env = "DELIVERY_SEND_TIMEOUT",
        value_name = "DURATION",
        default_value = "15s",
        value_parser = parse_duration
    )]
    pub send_timeout: Duration,
}

/// The secret of the dispatcher's API client. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret(String);

/// Why the dispatcher cannot start with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Core(#[from] core_client::Error),
    #[error("no api client: name its key with --client-key")]
    NoClientKey,
    #[error("no client secret: name its file with --client-secret-file or set {CLIENT_SECRET}")]
    NoClientSecret,
    #[error("the client secret cannot be taken from its file")]
    ClientSecretFile(#[from] secret_file::Error),
    #[error(
        "cannot listen on {addr}; choose another address with --health-listen, or port 0 for any free one"
    )]
    HealthListen { addr: SocketAddr, source: io::Error },
    #[error("platform name `{0}` does not fit into a header name: use letters, digits and hyphens")]
    PlatformName(String),
    #[error("cannot read certificate authorities from {path}: a pem file is needed")]
    CaFile {
        path: PathBuf,
        source: rustls::pki_types::pem::Error,
    },
    #[error("a certificate authority in {path} is not usable")]
    Ca {
        path: PathBuf,
        source: rustls::Error,
    },
    #[error("tls is not usable")]
    Tls(#[source] rustls::Error),
}

impl Config {
    const MAX_IN_FLIGHT: NonZeroU32 = NonZeroU32::new(256).expect("256 is not zero");

    pub(crate) fn policy(&self) -> Policy {
        Policy {
            allow_http: self.allow_http,
            allowed_networks: self.allow_networks.clone(),
            refused_ports: self.refuse_ports.clone(),
        }
    }

    /// `X-<Platform>-Signature`.
    pub(crate) fn signature_header(&self) -> Result<HeaderName, ConfigError> {
        let wrong = || ConfigError::PlatformName(self.platform_name.clone());
        let sound = (1..=64).contains(&self.platform_name.len())
            && self
                .platform_name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !sound {
            return Err(wrong());
        }
        format!("x-{}-signature", self.platform_name)
            .parse()
            .map_err(|_| wrong())
    }

    /// The API client's key and secret.
    pub(crate) fn credentials(&self) -> Result<(String, ClientSecret), ConfigError> {
        let key = self.client_key.clone().ok_or(ConfigError::NoClientKey)?;
        Ok((key, self.secret()?))
    }

    fn secret(&self) -> Result<ClientSecret, ConfigError> {
        let text = match (&self.client_secret, &self.client_secret_file) {
            (Some(secret), _) => return Ok(secret.clone()),
            (None, Some(path)) => secret_file::read(path)?,
            (None, None) => std::env::var_os(CLIENT_SECRET)
                .and_then(|text| text.into_string().ok())
                .ok_or(ConfigError::NoClientSecret)?,
        };
        match text.trim() {
            "" => Err(ConfigError::NoClientSecret),
            secret => Ok(ClientSecret::from(secret.to_owned())),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            core_urls: Vec::new(),
            core: CoreConfig::default(),
            health_listen: None,
            client_key: None,
            client_secret_file: None,
            client_secret: None,
            platform_name: "Service".to_owned(),
            allow_http: false,
            allow_networks: Vec::new(),
            refuse_ports: Vec::new(),
            ca_files: Vec::new(),
            max_in_flight: Self::MAX_IN_FLIGHT,
            send_timeout: Duration::from_secs(15),
        }
    }
}

impl ClientSecret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for ClientSecret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(…)")
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    text.parse::<jiff::SignedDuration>()
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "not a duration above zero: write it as 15s or 500ms".to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_default_is_what_no_flags_mean() {
        assert_eq!(
            Config::try_parse_from(["webhook-dispatcher"]).unwrap(),
            Config::default()
        );
    }

    #[test]
    fn flags_set_what_they_name() {
        let config = Config::try_parse_from([
            "webhook-dispatcher",
            "--core-url=http://127.0.0.1:1,http://127.0.0.1:2",
            "--core-url=https://core.example",
            "--client-key=key",
            "--platform-name=Coop",
            "--allow-http",
            "--allow-network=127.0.0.0/8",
            "--allow-network=::1",
            "--refuse-port=25,465",
            "--max-in-flight=8",
            "--send-timeout=1.5s",
        ])
        .unwrap();

        assert_eq!(
            config,
            Config {
                core_urls: vec![
                    "http://127.0.0.1:1".parse().unwrap(),
                    "http://127.0.0.1:2".parse().unwrap(),
                    "https://core.example".parse().unwrap(),
                ],
                client_key: Some("key".to_owned()),
                platform_name: "Coop".to_owned(),
                allow_http: true,
                allow_networks: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
                refuse_ports: vec![25, 465],
                max_in_flight: NonZeroU32::new(8).unwrap(),
                send_timeout: Duration::from_millis(1500),
                ..Config::default()
            }
        );
    }

    #[test]
    fn settings_that_mean_nothing_are_refused() {
        for flag in [
            "--max-in-flight=0",
            "--send-timeout=0s",
            "--send-timeout=-1s",
            "--send-timeout=soon",
            "--allow-network=10.0.0.1/8",
            "--refuse-port=70000",
            "--client-secret=s",
        ] {
            assert!(
                Config::try_parse_from(["webhook-dispatcher", flag]).is_err(),
                "{flag}"
            );
        }
    }

    #[test]
    fn a_platform_name_must_fit_into_a_header() {
        for (name, expected) in [
            ("Service", Some("x-service-signature")),
            ("Coop-Cycle2", Some("x-coop-cycle2-signature")),
            ("", None),
            ("My Coop", None),
            ("Vélo", None),
            ("a\r\nb", None),
        ] {
            let config = Config {
                platform_name: name.to_owned(),
                ..Config::default()
            };
            let header = config.signature_header().ok();
            assert_eq!(header.as_ref().map(HeaderName::as_str), expected, "{name}");
        }
    }

    #[test]
    fn a_secret_comes_from_a_file_and_is_never_shown() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"hunter2\n").unwrap();
        let config = Config {
            client_key: Some("key".to_owned()),
            client_secret_file: Some(file.path().to_owned()),
            ..Config::default()
        };

        let (key, secret) = config.credentials().unwrap();

        assert_eq!((key.as_str(), secret.expose()), ("key", "hunter2"));
        assert_eq!(format!("{secret:?}"), "ClientSecret(…)");
    }
}
