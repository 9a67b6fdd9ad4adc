//! `delivery keys`: the keys that sign access tokens, and the master key.

mod rotate_master;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use core_service::MasterKeyCommand;
use delivery::{DEFAULT_DATA_DIR, MASTER_KEY};
use proto::{
    ListSigningKeysRequest, RevokeSigningKeysRequest, RotateSigningKeyRequest, SigningKey,
    revoke_signing_keys_request::Keys,
};

use crate::cli::{
    access::CoreCommand,
    id,
    output::{self, View, enum_name, instant},
};

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
pub(crate) struct Revoked {
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
            Command::RotateMaster => rotate_master::run(core, json).await,
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
    #[arg(
        long,
        env = "DELIVERY_DATA_DIR",
        value_name = "DIR",
        default_value = DEFAULT_DATA_DIR,
        global = true
    )]
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
