//! What a start says: three lines to paste, and the one that begins `ready`.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::Context;
use delivery::Platform;
use proto::{IssueTokenRequest, tokens_client::TokensClient};

/// Prints it. The lines carry a real token of the demo shop's, so that each works by itself.
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
        .context("core does not answer")?
        .issue_token(IssueTokenRequest {
            api_key: client.api_key.clone(),
            api_secret: client.api_secret.clone(),
            scopes: vec!["deliveries".to_owned(), "tasks".to_owned()],
        })
        .await
        .context("core gives the demo shop no token")?
        .into_inner();
    let minutes = token.expires_in / 60;
    let bearer = format!("-H 'Authorization: Bearer {}'", token.access_token);
    let basic = format!("{}:{}", client.api_key, client.api_secret);

    let mut out = io::stdout().lock();
    writeln!(
        out,
        "A demo shop is open. A token, a delivery, the time slots (the token in the last two is good for {minutes} min):\n\n\
         curl -s -u '{basic}' -d grant_type=client_credentials -d 'scope=deliveries tasks' {base_url}/oauth2/token\n\n\
         curl -s {bearer} -H 'Content-Type: application/ld+json' -d '{DELIVERY}' {base_url}/api/deliveries\n\n\
         curl -s {bearer} {base_url}/api/time_slots/choices\n\n\
         ready: REST {base_url}, gRPC {core_url}, keys in {}",
        data_dir.join("ready.json").display(),
    )?;
    out.flush()?;
    Ok(())
}

/// Nothing but a dropoff: the pickup is the shop's own address.
const DELIVERY: &str =
    r#"{"dropoff":{"address":"48 Rue de Rivoli, 75004 Paris","before":"tomorrow 13:00"}}"#;
