//! The banner that `delivery` prints once it is ready: three commands to copy, and the line that
//! begins with `ready`.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::Context;
use delivery::Platform;
use proto::{IssueTokenRequest, tokens_client::TokensClient};

/// Prints the banner, with a valid access token of the demo store in the commands.
pub(crate) async fn print(platform: &Platform, data_dir: &Path) -> anyhow::Result<()> {
    let Platform {
        base_url,
        core_url,
        demo,
        ..
    } = platform;
    let client = &demo.demo_client;
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

    let mut out = io::stdout().lock();
    writeln!(
        out,
        "A demo store is ready. Get a token, create a delivery, list the time slots (the token in the last two commands expires in {minutes} min):\n\n\
         curl -s -u '{basic}' -d grant_type=client_credentials -d 'scope=deliveries tasks' {base_url}/oauth2/token\n\n\
         curl -s {bearer} -H 'Content-Type: application/ld+json' -d '{DELIVERY}' {base_url}/api/deliveries\n\n\
         curl -s {bearer} {base_url}/api/time_slots/choices\n\n\
         ready: REST {base_url}, gRPC {core_url}, keys in {}",
        data_dir.join("ready.json").display(),
    )?;
    out.flush()?;
    Ok(())
}

/// A dropoff only: the pickup defaults to the store's address.
const DELIVERY: &str =
    r#"{"dropoff":{"address":"48 Rue de Rivoli, 75004 Paris","before":"tomorrow 13:00"}}"#;
