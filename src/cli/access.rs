//! Connects a command to a core, with an operator's access token.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use core_client::{CoreConfig, CoreUrl, Cores, is_from_core};
use delivery::{Credentials, DEFAULT_DATA_DIR, ready::ReadyFile};
use process::random;
use proto::{IssueTokenRequest, tokens_client::TokensClient};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
};

use crate::cli::errors::call_error;

const KEY_VARIABLE: &str = "DELIVERY_OPERATOR_KEY";
const SECRET_VARIABLE: &str = "DELIVERY_OPERATOR_SECRET";

const HELP_HEADING: &str = "Target core";

/// The flags of all commands that call core.
#[derive(Args, Debug)]
pub(crate) struct Access {
    #[arg(
        long,
        env = "DELIVERY_CORE_URL",
        value_name = "URL",
        value_delimiter = ',',
        global = true,
        help_heading = HELP_HEADING,
        help = format!("gRPC URLs of cores, of which the first that can be reached is called; requires {KEY_VARIABLE} and {SECRET_VARIABLE}")
    )]
    core_url: Vec<CoreUrl>,

    /// Data directory of the all-in-one to call; ignored with --core-url
    #[arg(long, env = "DELIVERY_DATA_DIR", value_name = "DIR")]
    #[arg(default_value = DEFAULT_DATA_DIR, global = true)]
    #[arg(help_heading = HELP_HEADING)]
    data_dir: PathBuf,

    #[command(flatten)]
    core: CoreConfig,

    /// Idempotency key: a command repeated with it takes effect once and prints the same output
    ///
    /// 1 to 255 printable ASCII characters, valid for 7 days. By default a new one. Ignored by
    /// commands that change nothing, and by `addresses import`, `erase` and `keys rotate-master`,
    /// which can simply be run again.
    #[arg(long, value_name = "KEY", global = true)]
    idempotency_key: Option<String>,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The flags of a command whose subcommands call core.
#[derive(Args, Debug)]
pub(crate) struct CoreCommand<C: Subcommand> {
    #[command(flatten)]
    pub(crate) access: Access,
    #[command(subcommand)]
    pub(crate) command: C,
}

/// A connection to a core, whose calls have the access token.
pub(crate) type Channel = InterceptedService<core_client::Channel, Bearer>;

/// The access token, as the value of `authorization`.
#[derive(Clone)]
pub(crate) struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// A connected core.
pub(crate) struct Core {
    pub(crate) channel: Channel,
    /// Without a timeout of calls: for uploads, which may take minutes.
    pub(crate) upload_channel: Channel,
    /// For the command's write, if it has one.
    pub(super) idempotency_key: String,
}

impl Access {
    /// Connects and gets an access token with a scope.
    pub(crate) async fn connect(&self, scope: &str) -> anyhow::Result<Core> {
        let (core_urls, credentials) = self.target()?;
        let cores = Cores::new(&core_urls, &self.core)?;
        let mut last_error = None;
        for core in cores.addresses().await? {
            let channel = match cores.connect(&core).await {
                Ok(channel) => channel,
                Err(error) => {
                    last_error = Some(error.into());
                    continue;
                }
            };
            let error = match issue_token(channel.clone(), &credentials, scope).await {
                Ok(token) => return self.core([channel, cores.channel(&core)], &token),
                Err(status) if is_from_core(&status) => return Err(token_error(&status)),
                Err(status) => token_error(&status).context(format!(
                    "{core} does not respond as a core: if it is one and runs, check the scheme and the port of its URL"
                )),
            };
            last_error = Some(error);
        }
        Err(last_error.context("no core has an address")?)
    }

    fn core(&self, channels: [core_client::Channel; 2], token: &str) -> anyhow::Result<Core> {
        let bearer = format!("Bearer {token}")
            .parse()
            .map(Bearer)
            .context("core returned an invalid access token")?;
        let [channel, upload_channel] =
            channels.map(|channel| InterceptedService::new(channel, bearer.clone()));
        let given = self.idempotency_key.clone();
        Ok(Core {
            channel,
            upload_channel,
            idempotency_key: given.unwrap_or_else(random::token::<16>),
        })
    }

    fn target(&self) -> anyhow::Result<(Vec<CoreUrl>, Credentials)> {
        if self.core_url.is_empty() {
            let ready = ReadyFile::read(&self.data_dir).context("no --core-url is given")?;
            let credentials = ready.operator_client.with_context(|| {
                format!(
                    "the operator's secret in {} was replaced, or its client disabled: set --core-url {} with the new credentials in {KEY_VARIABLE} and {SECRET_VARIABLE}",
                    self.data_dir.display(),
                    ready.core_url,
                )
            })?;
            return Ok((vec![ready.core_url.parse()?], credentials));
        }
        let required = |name| {
            from_environment(name).with_context(|| {
                format!("{name} is not set: --core-url requires the operator's credentials in {KEY_VARIABLE} and {SECRET_VARIABLE}")
            })
        };
        let credentials = Credentials {
            api_key: required(KEY_VARIABLE)?,
            api_secret: required(SECRET_VARIABLE)?,
        };
        Ok((self.core_url.clone(), credentials))
    }
}

async fn issue_token(
    channel: core_client::Channel,
    credentials: &Credentials,
    scope: &str,
) -> Result<String, Status> {
    let request = IssueTokenRequest {
        api_key: credentials.api_key.clone(),
        api_secret: credentials.api_secret.clone(),
        scopes: vec![scope.to_owned()],
    };
    let issued = TokensClient::new(channel).issue_token(request).await?;
    Ok(issued.into_inner().access_token)
}

fn token_error(status: &Status) -> anyhow::Error {
    call_error(status).context("cannot get an access token for the operator")
}

/// A variable that is not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "secrets have no flags: flags are visible in the process list"
)]
pub(crate) fn from_environment(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}
