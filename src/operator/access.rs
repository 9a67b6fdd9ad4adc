//! Which core a command calls, and as whom.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use delivery::{Credentials, DEFAULT_DATA_DIR, ready::Ready};
use proto::{IssueTokenRequest, tokens_client::TokensClient};
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, ClientTlsConfig, Endpoint},
};
use url::{Host, Url};

use crate::operator::refusal::refused;

const KEY: &str = "DELIVERY_OPERATOR_KEY";
const SECRET: &str = "DELIVERY_OPERATOR_SECRET";

const WHOM: &str = "Whom to call";

/// Flags of every operator's command.
#[derive(Args, Debug)]
pub(crate) struct Access {
    #[arg(
        long,
        env = "DELIVERY_CORE_URL",
        value_name = "URL",
        global = true,
        help_heading = WHOM,
        help = format!("gRPC address of a core to call, with {KEY} and {SECRET} set")
    )]
    core_url: Option<String>,

    /// Data directory of the all-in-one to call, if no core is named
    #[arg(
        long,
        env = "DELIVERY_DATA_DIR",
        value_name = "DIR",
        default_value = DEFAULT_DATA_DIR,
        global = true,
        help_heading = WHOM
    )]
    data_dir: PathBuf,

    /// Let a core that is not on this machine be called without TLS: the operator's secret
    /// passes in the clear
    #[arg(
        long,
        env = "DELIVERY_ALLOW_PLAINTEXT_CORE",
        global = true,
        help_heading = WHOM
    )]
    allow_plaintext_core: bool,

    /// Print one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Mistakes come back in headers: room for as many as a definition can have.
const MAX_HEADER_BYTES: u32 = 1024 * 1024;

/// A core, and the right to call it.
pub(crate) struct Core {
    pub(crate) channel: Channel,
    bearer: MetadataValue<Ascii>,
}

impl Access {
    /// Gets a token for a scope.
    pub(crate) async fn open(&self, scope: &str) -> anyhow::Result<Core> {
        let (core_url, credentials) = self.target()?;
        let channel = endpoint(&core_url, self.allow_plaintext_core)?
            .connect()
            .await
            .map_err(|error| unreachable(&core_url, error))?;

        let token = TokensClient::new(channel.clone())
            .issue_token(IssueTokenRequest {
                api_key: credentials.api_key,
                api_secret: credentials.api_secret,
                scopes: vec![scope.to_owned()],
            })
            .await
            .map_err(|status| refused(&status).context("no token for the operator"))?
            .into_inner();

        let bearer = format!("Bearer {}", token.access_token)
            .parse()
            .context("core gave a token that is none")?;
        Ok(Core { channel, bearer })
    }

    fn target(&self) -> anyhow::Result<(String, Credentials)> {
        let Some(core_url) = self.core_url.clone() else {
            let ready = Ready::read(&self.data_dir)?;
            return Ok((ready.core_url, ready.operator_client));
        };
        let credentials = Credentials {
            api_key: from_environment(KEY)?,
            api_secret: from_environment(SECRET)?,
        };
        Ok((core_url, credentials))
    }
}

impl Core {
    /// The message as the operator's request.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request
            .metadata_mut()
            .insert("authorization", self.bearer.clone());
        request
    }
}

fn endpoint(core_url: &str, allow_plaintext: bool) -> anyhow::Result<Endpoint> {
    let wrong = || format!("`{core_url}` is no address of a core");
    let url = Url::parse(core_url).with_context(wrong)?;
    let endpoint = Endpoint::from_shared(core_url.to_owned())
        .with_context(wrong)?
        .http2_max_header_list_size(MAX_HEADER_BYTES);
    match url.scheme() {
        "https" => endpoint
            .tls_config(ClientTlsConfig::new().with_native_roots())
            .with_context(wrong),
        _ if allow_plaintext || is_loopback(&url) => Ok(endpoint),
        _ => anyhow::bail!(
            "the operator's secret would pass in the clear to {core_url}: use https, or say --allow-plaintext-core"
        ),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn unreachable(core_url: &str, error: tonic::transport::Error) -> anyhow::Error {
    let cause = anyhow::Error::from(error);
    let cause = cause.root_cause();
    anyhow::anyhow!("no core answers at {core_url}: is it running? ({cause})")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a secret has no flag: flags show in the list of processes"
)]
fn from_environment(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| {
        format!("{name} is not set: with --core-url the operator's credentials come from {KEY} and {SECRET}")
    })
}
