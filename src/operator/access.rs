//! Which core a command calls, and as whom.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use core_client::{CoreConfig, CoreUrl, Cores};
use delivery::{Credentials, DEFAULT_DATA_DIR, ready::Ready};
use proto::{IssueTokenRequest, tokens_client::TokensClient};
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

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
    core_url: Option<CoreUrl>,

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

    #[command(flatten)]
    core: CoreConfig,

    /// Print one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// A core, and the right to call it.
pub(crate) struct Core {
    pub(crate) channel: Channel,
    bearer: MetadataValue<Ascii>,
}

impl Access {
    /// Gets a token for a scope.
    pub(crate) async fn open(&self, scope: &str) -> anyhow::Result<Core> {
        let (core_url, credentials) = self.target()?;
        let cores = Cores::new(std::slice::from_ref(&core_url), &self.core)?;
        let channel = cores.connect_to_any().await?;

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

    fn target(&self) -> anyhow::Result<(CoreUrl, Credentials)> {
        let Some(core_url) = self.core_url.clone() else {
            let ready = Ready::read(&self.data_dir)?;
            return Ok((ready.core_url.parse()?, ready.operator_client));
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

#[expect(
    clippy::disallowed_methods,
    reason = "a secret has no flag: flags show in the list of processes"
)]
fn from_environment(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| {
        format!("{name} is not set: with --core-url the operator's credentials come from {KEY} and {SECRET}")
    })
}
