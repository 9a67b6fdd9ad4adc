//! The settings of the dispatcher: flags, environment and defaults.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use clap::Parser;
use core_client::{CoreConfig, CoreUrl};
use egress::Policy;
use http::HeaderName;
use process::{
    command_line, duration, logs::LogConfig, number, redacted::Redacted, reloading::Reloading,
    secret_file, traces::TraceConfig,
};

/// The secret has an environment variable but no flag: command lines are visible to all users.
const CLIENT_SECRET: &str = "DELIVERY_CLIENT_SECRET";

/// Sends signed notifications from core to webhooks.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(version = process::version::version())]
pub struct Config {
    /// URL of a core, e.g. `http://127.0.0.1:50051`; repeatable. A host name may have the
    /// addresses of several cores, and is looked up periodically. Default: none, one is required.
    /// Example: `https://core.internal:50051`.
    #[arg(
        long = "core-url",
        env = "DELIVERY_CORE_URL",
        value_name = "URL",
        value_delimiter = ','
    )]
    pub core_urls: Vec<CoreUrl>,

    #[command(flatten)]
    pub core: CoreConfig,

    /// Address of `/healthz`, `/readyz` and `/metrics` over HTTP. Default: none. Example: `127.0.0.1:9102`.
    #[arg(long, env = "DELIVERY_DISPATCHER_HEALTH_LISTEN", value_name = "ADDR")]
    pub health_listen: Option<SocketAddr>,

    /// Key of an API client with the scope `notifications`. Default: none, it is required.
    /// Example: `dd-RSHWjkmhsgTKSdfnDOg`.
    #[arg(long, env = "DELIVERY_CLIENT_KEY", value_name = "KEY")]
    pub client_key: Option<String>,

    /// File with the API client's secret, readable by its owner only, and read again when it
    /// changes. Alternatively, set `DELIVERY_CLIENT_SECRET` to the secret. Default: none. Example:
    /// `/etc/delivery/dispatcher.secret`.
    #[arg(long, env = "DELIVERY_CLIENT_SECRET_FILE", value_name = "PATH")]
    pub client_secret_file: Option<PathBuf>,

    /// The API client's secret, if set in code; overrides the file and the environment.
    #[arg(skip)]
    pub client_secret: Option<Redacted<String>>,

    /// Name of the platform in the header `X-<Name>-Signature`. Example: `Coop`.
    #[arg(
        long,
        env = "DELIVERY_PLATFORM_NAME",
        value_name = "NAME",
        default_value = "Service"
    )]
    pub platform_name: String,

    #[command(flatten)]
    pub egress: Policy,

    #[command(flatten)]
    pub logs: LogConfig,

    #[command(flatten)]
    pub traces: TraceConfig,

    /// PEM file with certificate authorities to trust for webhooks in addition to the system's;
    /// repeatable. Default: none. Example: `/etc/delivery/shops.pem`.
    #[arg(
        long = "webhook-ca-file",
        env = "DELIVERY_WEBHOOK_CA_FILE",
        value_name = "PATH",
        value_delimiter = ','
    )]
    pub webhook_ca_files: Vec<PathBuf>,

    /// Maximum number of notifications in flight. Example: `64`.
    #[arg(
        long,
        env = "DELIVERY_MAX_IN_FLIGHT",
        value_name = "COUNT",
        default_value_t = Config::MAX_IN_FLIGHT,
        value_parser = number::at_least(NonZeroU32::MIN, Config::MAX_IN_FLIGHT)
    )]
    pub max_in_flight: NonZeroU32,

    /// Timeout of one attempt, from DNS to the end of the response. Example: `10s`.
    #[arg(
        long,
        env = "DELIVERY_SEND_TIMEOUT",
        value_name = "DURATION",
        default_value = "15s",
        value_parser = duration::parse
    )]
    pub send_timeout: Duration,
}

impl Config {
    const MAX_IN_FLIGHT: NonZeroU32 = NonZeroU32::new(256).expect("256 is not zero");

    /// `X-<Platform>-Signature`.
    pub(crate) fn signature_header(&self) -> anyhow::Result<HeaderName> {
        let name = &self.platform_name;
        let is_valid = (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        ensure!(
            is_valid,
            "platform name `{name}` is not valid in a header name: use 1 to 64 letters, digits and hyphens"
        );
        Ok(format!("x-{name}-signature").parse()?)
    }

    pub(crate) fn credentials(&self) -> anyhow::Result<(String, SecretSource)> {
        let key = self.client_key.clone();
        let key = key.context("no api client: set --client-key")?;
        Ok((key, self.secret()?))
    }

    fn secret(&self) -> anyhow::Result<SecretSource> {
        if let (None, Some(path)) = (&self.client_secret, self.client_secret_file.clone()) {
            let files = vec![path.clone()];
            let read = move || {
                let text = secret_file::read(&path).context("cannot read the client secret")?;
                client_secret(&text)
            };
            return Ok(Arc::new(Reloading::open(files, read)?));
        }
        let secret = if let Some(secret) = &self.client_secret {
            secret.clone()
        } else {
            let text = std::env::var_os(CLIENT_SECRET).and_then(|text| text.into_string().ok());
            client_secret(&text.unwrap_or_default())?
        };
        // Without files it is never read again.
        let read = move || Ok(secret.clone());
        Ok(Arc::new(Reloading::open(Vec::new(), read)?))
    }
}

impl Default for Config {
    fn default() -> Self {
        command_line::settings(&[])
    }
}

/// The secret of the dispatcher's API client; that of a file is read again when it changes.
pub(crate) type SecretSource = Arc<Reloading<Redacted<String>>>;

fn client_secret(text: &str) -> anyhow::Result<Redacted<String>> {
    let secret = text.trim();
    ensure!(
        !secret.is_empty(),
        "no client secret: set --client-secret-file or {CLIENT_SECRET}"
    );
    Ok(secret.to_owned().into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn flags_set_their_settings() {
        let config = Config::try_parse_from([
            "webhook-dispatcher",
            "--core-url=http://127.0.0.1:1,http://127.0.0.1:2",
            "--core-url=https://core.example",
            "--client-key=key",
            "--platform-name=Coop",
            "--allow-http",
            "--allow-network=127.0.0.0/8",
            "--allow-network=::1",
            "--deny-network=192.0.2.0/24",
            "--allow-port=8080,8443",
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
                egress: Policy {
                    allow_http: true,
                    allowed_networks: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
                    denied_networks: vec!["192.0.2.0/24".parse().unwrap()],
                    allowed_ports: vec![8080, 8443],
                },
                max_in_flight: NonZeroU32::new(8).unwrap(),
                send_timeout: Duration::from_millis(1500),
                ..Config::default()
            }
        );
    }

    #[test]
    fn invalid_settings_are_rejected() {
        for flag in [
            "--max-in-flight=0",
            "--send-timeout=0s",
            "--send-timeout=-1s",
            "--send-timeout=soon",
            "--allow-network=10.0.0.1/8",
            "--allow-port=70000",
            "--client-secret=s",
        ] {
            assert!(
                Config::try_parse_from(["webhook-dispatcher", flag]).is_err(),
                "{flag}"
            );
        }
    }

    #[test]
    fn a_platform_name_must_be_valid_in_a_header_name() {
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
    fn a_secret_is_read_from_a_file_and_not_printed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"hunter2\n").unwrap();
        let config = Config {
            client_key: Some("key".to_owned()),
            client_secret_file: Some(file.path().to_owned()),
            ..Config::default()
        };

        let (key, secret) = config.credentials().unwrap();

        assert_eq!(
            (key.as_str(), secret.current().expose().as_str()),
            ("key", "hunter2")
        );
        assert_eq!(format!("{:?}", secret.current()), "…");
    }
}
