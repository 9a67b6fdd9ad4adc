//! `delivery keys`: the keys that sign access tokens, and the master key.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, Subcommand};
use core_service::MasterKeyCommand;
use delivery::{DEFAULT_DATA_DIR, MASTER_KEY};
use proto::{
    ListSigningKeysRequest, ReencryptSecretsRequest, ReencryptSecretsResponse,
    RevokeSigningKeysRequest, RotateSigningKeyRequest, SigningKey,
    revoke_signing_keys_request::Keys,
};

use crate::cli::{
    access::{Core, CoreCommand},
    id,
    output::{self, View, enum_name, instant},
};

/// How many calls are made between two lines of progress.
const CALLS_PER_LINE: usize = 100;

/// The maximum number of passes over all secrets. A pass that finds none under another key is the
/// last.
const MAX_PASSES: usize = 5;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a new key, published immediately and used for signing a minute later
    ///
    /// Tokens signed with the old key stay valid until they expire.
    Rotate,
    /// Revoke a compromised key: within 90 s, no core accepts its tokens any more
    ///
    /// Prints the keys that are left. If the key was the signing one, a new one is created. With
    /// --all, every token that was issued until now ends. For the tokens of one client, see
    /// `delivery clients rotate-secret --overlap 0`.
    Revoke(KeysToRevoke),
    /// List the keys that verify access tokens, newest first
    List,
    /// Encrypt all stored secrets with the current master key, and print the keys no longer in use
    ///
    /// First add a key to the file of every core (`core-service master-key add`), then make it current
    /// in every file (`core-service master-key use`). Running this again changes nothing more. Price
    /// quotes are not stored: remove an unused key once those issued under it have expired (after 15
    /// minutes, or the longest `quote_expiry`).
    RotateMaster,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct KeysToRevoke {
    /// Id of the key: the `kid` of its tokens
    // One in 64 ids begins with a hyphen.
    #[arg(value_name = "ID", allow_hyphen_values = true)]
    key: Option<String>,
    /// All keys
    #[arg(long)]
    all: bool,
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let json = self.access.json;

        match self.command {
            Command::Rotate => {
                let message = RotateSigningKeyRequest { idempotency: None };
                let created = core.write(message).await?;
                output::one(json, view(&created))
            }
            Command::Revoke(revoked) => {
                let keys_to_revoke = revoked.key.map_or(Keys::All(true), Keys::KeyId);
                let message = RevokeSigningKeysRequest {
                    keys: Some(keys_to_revoke),
                    idempotency: None,
                };
                let remaining = core.write(message).await?;
                output::many(json, remaining.signing_keys.iter().map(view))
            }
            Command::RotateMaster => rotate_master(&core, json).await,
            Command::List => {
                let listed = core.call(ListSigningKeysRequest {}).await?;
                output::many(json, listed.signing_keys.iter().map(view))
            }
        }
    }
}

/// `delivery master-key`: the master keys in the data directory.
#[derive(Args, Debug)]
pub(crate) struct MasterKey {
    /// Data directory of the all-in-one
    #[arg(long, env = "DELIVERY_DATA_DIR", value_name = "DIR")]
    #[arg(default_value = DEFAULT_DATA_DIR, global = true)]
    data_dir: PathBuf,
    #[command(subcommand)]
    command: MasterKeyCommand,
}

impl MasterKey {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let ids = self.command.run(&self.data_dir.join(MASTER_KEY))?;
        let lines: Vec<_> = ids.iter().map(ToString::to_string).collect();
        output::text(&lines.join("\n"))
    }
}

/// `id` is the `kid` of tokens; `accepted_until` is null until a newer key signs.
fn view(key: &SigningKey) -> View {
    View::default()
        .field("id", id::of(&key.name))
        .field("state", enum_name(key.state().as_str_name(), "STATE_"))
        .field("created_at", instant(key.create_time, "UTC"))
        .field("signs_from", instant(key.sign_time, "UTC"))
        .field("accepted_until", instant(key.expire_time, "UTC"))
}

/// `delivery keys rotate-master`: encrypts all stored secrets with the current master key.
async fn rotate_master(core: &Core, json: bool) -> anyhow::Result<()> {
    let mut rotated = ReencryptSecretsResponse::default();
    for _ in 0..MAX_PASSES {
        let before = total(&rotated);
        pass(core, &mut rotated).await?;
        if total(&rotated) == before {
            output::one(json, view_of_rotation(&rotated))?;
            if rotated.other_keys.is_empty() {
                eprintln!(
                    "note: the core has no other master key; to replace this one, add a key with core-service master-key add (delivery master-key add)"
                );
            }
            return Ok(());
        }
    }
    bail!(
        "secrets are still being encrypted with another master key: make {} current in the file of every core, then repeat this command",
        rotated.current_key
    )
}

/// Examines all secrets once.
async fn pass(core: &Core, rotated: &mut ReencryptSecretsResponse) -> anyhow::Result<()> {
    for calls in 1_usize.. {
        // Without an idempotency key: repeating it changes nothing.
        let page_token = std::mem::take(&mut rotated.next_page_token);
        let request = ReencryptSecretsRequest { page_token };
        let response = core.call(request).await?;
        add(rotated, response)?;
        if rotated.next_page_token.is_empty() {
            break;
        }
        if calls.is_multiple_of(CALLS_PER_LINE) {
            eprintln!("examining: {} secrets re-encrypted", total(rotated));
        }
    }
    Ok(())
}

/// Adds the result of a call to those of earlier calls.
fn add(
    rotated: &mut ReencryptSecretsResponse,
    response: ReencryptSecretsResponse,
) -> anyhow::Result<()> {
    ensure!(
        rotated.current_key.is_empty() || rotated.current_key == response.current_key,
        "the current master key has changed from {} to {}: make the same key current in the file of every core, then repeat this command",
        rotated.current_key,
        response.current_key
    );
    *rotated = ReencryptSecretsResponse {
        signing_keys: rotated.signing_keys + response.signing_keys,
        platform_secrets: rotated.platform_secrets + response.platform_secrets,
        webhooks: rotated.webhooks + response.webhooks,
        stored_responses: rotated.stored_responses + response.stored_responses,
        ..response
    };
    Ok(())
}

fn total(rotated: &ReencryptSecretsResponse) -> u32 {
    rotated.signing_keys + rotated.platform_secrets + rotated.webhooks + rotated.stored_responses
}

fn view_of_rotation(rotated: &ReencryptSecretsResponse) -> View {
    View::default()
        .field("current_key", &*rotated.current_key)
        .field("unused_keys", &*rotated.other_keys)
        .field("signing_keys", rotated.signing_keys)
        .field("platform_secrets", rotated.platform_secrets)
        .field("webhooks", rotated.webhooks)
        .field("stored_responses", rotated.stored_responses)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        revoked: KeysToRevoke,
    }

    #[test]
    fn the_id_of_a_key_may_begin_with_a_hyphen() {
        for id in ["-TkZ", "--Zk", "_k"] {
            let command = Command::try_parse_from(["revoke", id]).unwrap();
            assert_eq!(
                (command.revoked.key.as_deref(), command.revoked.all),
                (Some(id), false)
            );
        }
        let command = Command::try_parse_from(["revoke", "--all"]).unwrap();
        assert_eq!((command.revoked.key, command.revoked.all), (None, true));
    }
}
