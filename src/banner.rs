//! The banner that `delivery` prints once it is ready: three commands to copy, if it starts on a
//! terminal, and the line that begins with `ready`.

use std::{
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use anyhow::Context;
use delivery::{Credentials, Platform};
use proto::{IssueTokenRequest, tokens_client::TokensClient};

pub(crate) async fn print(platform: &Platform, data_dir: &Path) -> anyhow::Result<()> {
    let client = platform.demo.as_ref().and_then(|demo| demo.client.as_ref());
    // The commands contain a secret, which must not get into the log of a service.
    let commands = match client.filter(|_| io::stdout().is_terminal()) {
        Some(client) => commands(platform, client).await?,
        None => String::new(),
    };
    let Platform {
        base_url, grpc_url, ..
    } = platform;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{commands}ready: REST {base_url}, gRPC {grpc_url}, keys in {}",
        data_dir.join("ready.json").display(),
    )?;
    out.flush()?;
    Ok(())
}

/// The commands, with a valid access token of the demo store.
async fn commands(platform: &Platform, client: &Credentials) -> anyhow::Result<String> {
    let Platform {
        base_url, core_url, ..
    } = platform;
    let token = TokensClient::connect(core_url.clone())
        .await
        .context("cannot connect to core")?
        .issue_token(IssueTokenRequest {
            api_key: client.api_key.clone(),
            api_secret: client.api_secret.clone(),
            scopes: vec!["deliveries".to_owned(), "tasks".to_owned()],
        })
        .await
        .context("cannot get an access token for the demo store")?
        .into_inner();
    let minutes = token.expires_in / 60;
    let bearer = format!("-H 'Authorization: Bearer {}'", token.access_token);
    let basic = format!("{}:{}", client.api_key, client.api_secret);

    Ok(format!(
        "A demo store is ready. Get a token, create a delivery, list the time slots (the token in the last two commands expires in {minutes} min):\n\n\
         curl -s -u '{basic}' -d grant_type=client_credentials -d 'scope=deliveries tasks' {base_url}/oauth2/token\n\n\
         curl -s {bearer} -H 'Content-Type: application/ld+json' -d '{DELIVERY}' {base_url}/api/deliveries\n\n\
         curl -s {bearer} {base_url}/api/time_slots/choices\n\n"
    ))
}

/// A dropoff only: the pickup defaults to the store's address.
const DELIVERY: &str =
    r#"{"dropoff":{"address":"48 Rue de Rivoli, 75004 Paris","before":"tomorrow 13:00"}}"#;
