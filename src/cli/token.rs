//! `delivery token`: an access token of the REST API, for the lines of a shell.

use std::io;

use anyhow::{Context, anyhow};
use clap::Args;
use delivery::{Credentials, ready::ReadyFile};
use oauth2::{
    ClientId, ClientSecret, HttpRequest, RequestTokenError, Scope, TokenResponse as _, TokenUrl,
    basic::{BasicClient, BasicErrorResponse},
};
use serde_json::Value;

use crate::cli::{DataDirFlag, access::from_environment, http, output};

const KEY_VARIABLE: &str = "DELIVERY_API_KEY";
const SECRET_VARIABLE: &str = "DELIVERY_API_SECRET";

pub(crate) const EXAMPLES: &str = "\
Examples:
  curl -H \"Authorization: Bearer $(delivery token)\" http://127.0.0.1:8080/api/deliveries
  delivery token --scopes 'deliveries tasks' --base-url https://delivery.example
                                                the client in DELIVERY_API_KEY and DELIVERY_API_SECRET";

#[derive(Args, Debug)]
pub(crate) struct Token {
    /// URL of the REST API. Default: that of the all-in-one of --data-dir
    #[arg(long, env = "DELIVERY_BASE_URL", value_name = "URL")]
    base_url: Option<url::Url>,

    #[command(flatten)]
    all_in_one: DataDirFlag,

    /// Scopes, separated by spaces. Default: `deliveries` or, if the client does not have it, all that
    /// it has
    #[arg(long, default_value = "", hide_default_value = true)]
    scopes: String,
}

impl Token {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let (base_url, credentials) = self.target()?;
        let token_url = format!("{}/oauth2/token", base_url.trim_end_matches('/'));
        let scopes = self.scopes.split_whitespace().map(str::to_owned);
        let http = |request: HttpRequest| async {
            http::send_verified(request).await.map_err(io::Error::other)
        };
        let token = BasicClient::new(ClientId::new(credentials.api_key))
            .set_client_secret(ClientSecret::new(credentials.api_secret))
            .set_token_uri(TokenUrl::new(token_url)?)
            .exchange_client_credentials()
            .add_scopes(scopes.map(Scope::new))
            .request_async(&http)
            .await
            .map_err(explained)?;
        output::text(token.access_token().secret())
    }

    /// Where to request a token, and with which client.
    fn target(&self) -> anyhow::Result<(String, Credentials)> {
        let mut credentials = None;
        if let Some(api_key) = from_environment(KEY_VARIABLE) {
            let api_secret = from_environment(SECRET_VARIABLE)
                .with_context(|| format!("{KEY_VARIABLE} is set, but {SECRET_VARIABLE} is not"))?;
            credentials = Some(Credentials {
                api_key,
                api_secret,
            });
        }
        let base_url = if let Some(base_url) = &self.base_url {
            base_url.to_string()
        } else {
            let ready =
                ReadyFile::read(&self.all_in_one.data_dir).context("no --base-url is given")?;
            credentials = credentials.or(ready.demo_client);
            ready.base_url
        };
        let credentials = credentials.with_context(|| {
            format!("set {KEY_VARIABLE} and {SECRET_VARIABLE}: only a running demo's client is known without them")
        })?;
        Ok((base_url, credentials))
    }
}

/// The error of the token endpoint (RFC 6749 §5.2), or of another response: its problem details, as of
/// a rate limit.
fn explained(error: RequestTokenError<io::Error, BasicErrorResponse>) -> anyhow::Error {
    let reason = match error {
        RequestTokenError::ServerResponse(response) => response.to_string(),
        RequestTokenError::Request(error) => error.to_string(),
        RequestTokenError::Parse(error, body) => {
            let problem = serde_json::from_slice::<Value>(&body).unwrap_or_default();
            let detail = problem["detail"].as_str().or(problem["title"].as_str());
            detail.map_or_else(
                || format!("the response is not that of a token endpoint: {error}"),
                str::to_owned,
            )
        }
        RequestTokenError::Other(reason) => reason,
    };
    anyhow!(reason).context("cannot get an access token")
}
