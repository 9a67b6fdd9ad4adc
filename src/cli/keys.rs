//! `delivery keys`: the keys that sign access tokens, and the master key.

mod rotate_master;

use clap::{Args, Subcommand};
use proto::{
    ListSigningKeysRequest, RevokeSigningKeysRequest, RotateSigningKeyRequest,
    revoke_signing_keys_request, signing_key, signing_keys_client::SigningKeysClient,
};
use serde::Serialize;

use crate::cli::{
    access::Access,
    errors::{call_error, reply},
    id,
    output::{self, Resource},
};

#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a new key, published immediately and used for signing a minute later
    ///
    /// Tokens signed with the old key stay valid until they expire.
    Rotate,
    /// Revoke a compromised key: within 90 s, no core accepts its tokens any more
    ///
    /// Prints the keys that are left. If the key was the signing one, a new one is created. With
    /// --all, every token that was issued until now ends. For the tokens of one client, see
    /// `delivery clients rotate-secret --overlap 0`.
    Revoke(Revoked),
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
struct Revoked {
    /// Id of the key: the `kid` of its tokens
    // One in 64 ids begins with a hyphen.
    #[arg(value_name = "ID", allow_hyphen_values = true)]
    key: Option<String>,
    /// All keys
    #[arg(long)]
    all: bool,
}

impl From<Revoked> for revoke_signing_keys_request::Keys {
    fn from(revoked: Revoked) -> Self {
        match revoked.key {
            Some(id) => Self::KeyId(id),
            None => Self::All(true),
        }
    }
}

impl Keys {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let keys = || SigningKeysClient::new(core.channel.clone());
        let json = self.access.json;

        match self.command {
            Command::Rotate => {
                let message = RotateSigningKeyRequest { idempotency: None };
                let created = core
                    .write(message, call_error, async |request| {
                        keys().rotate_signing_key(request).await
                    })
                    .await?;
                output::one(json, &Key::from(created))
            }
            Command::Revoke(revoked) => {
                let message = RevokeSigningKeysRequest {
                    keys: Some(revoked.into()),
                    idempotency: None,
                };
                let left = core
                    .write(message, call_error, async |request| {
                        keys().revoke_signing_keys(request).await
                    })
                    .await?;
                let keys: Vec<_> = left.signing_keys.into_iter().map(Key::from).collect();
                output::many(json, &keys)
            }
            Command::RotateMaster => rotate_master::run(&core, json).await,
            Command::List => {
                let request = core.request(ListSigningKeysRequest {});
                let listed = reply(keys().list_signing_keys(request).await)?;
                let keys: Vec<_> = listed.signing_keys.into_iter().map(Key::from).collect();
                output::many(json, &keys)
            }
        }
    }
}

#[derive(Serialize)]
struct Key {
    /// The `kid` of tokens.
    id: String,
    state: &'static str,
    created_at: Option<String>,
    signs_from: Option<String>,
    /// Null until a newer key signs.
    accepted_until: Option<String>,
}

impl From<proto::SigningKey> for Key {
    fn from(key: proto::SigningKey) -> Self {
        Self {
            id: id::of(&key.name).to_owned(),
            state: match key.state() {
                signing_key::State::Unspecified => "unknown",
                signing_key::State::Published => "published",
                signing_key::State::Signing => "signing",
                signing_key::State::Retired => "retired",
            },
            created_at: output::instant(key.create_time.as_ref(), "UTC"),
            signs_from: output::instant(key.sign_time.as_ref(), "UTC"),
            accepted_until: output::instant(key.expire_time.as_ref(), "UTC"),
        }
    }
}

impl Resource for Key {
    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("id", self.id.clone()),
            ("state", self.state.to_owned()),
            ("created", self.created_at.clone().unwrap_or_default()),
            ("signs from", self.signs_from.clone().unwrap_or_default()),
            (
                "accepted until",
                self.accepted_until.clone().unwrap_or_default(),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        revoked: Revoked,
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
