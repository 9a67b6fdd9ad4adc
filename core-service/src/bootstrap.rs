//! Prepares an empty platform and creates its first two API clients: the operator, with the right
//! to create all others, and the webhook dispatcher.

use std::{
    fs::DirBuilder,
    io::Write as _,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use domain::{
    api_client::{ApiClient, Scope, Scopes, TaskStatus},
    api_secrets::{ApiSecrets, SecretHash},
    id::{ApiClientId, StoreId},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use jiff::Timestamp;
use process::clock::Clock;
use process::random;
use proto::iri::Collection;
use serde::{Deserialize, Serialize};
use storage::{
    Storage,
    audit_events::{self, AuditEvent},
};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::{
    config::Config,
    error::Error,
    startup::{StartError, open_secret_box},
    workers::key_ring,
};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    pub api_key: String,
    pub api_secret: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("api_key", &self.api_key)
            .finish_non_exhaustive()
    }
}

/// The API clients created by [`bootstrap`].
#[derive(Clone, Debug, Serialize)]
pub struct Bootstrapped {
    /// Scopes `tasks:all admin`.
    pub operator_client: Credentials,
    /// Scope `notifications`.
    pub dispatcher_client: Credentials,
}

/// The files for the credentials of a bootstrap.
pub struct ClientFiles {
    clients: NewFile,
    dispatcher_secret: NewFile,
}

/// A file that does not have its name yet.
struct NewFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl ClientFiles {
    /// Creates the files, with mode 0600, in a directory, which is created if missing. Fails if it has files
    /// of these names.
    pub fn create(directory: &Path) -> anyhow::Result<Self> {
        let mut options = DirBuilder::new();
        let created = options.recursive(true).mode(0o700).create(directory);
        created.with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self {
            clients: NewFile::create(directory, "clients.json")?,
            dispatcher_secret: NewFile::create(directory, "dispatcher-secret")?,
        })
    }

    /// Writes the credentials to disk, and returns the paths of the files.
    pub fn write(self, clients: &Bootstrapped) -> anyhow::Result<[PathBuf; 2]> {
        let json = serde_json::to_string_pretty(clients)?;
        let secret = &clients.dispatcher_client.api_secret;
        Ok([
            self.clients.write(&json)?,
            self.dispatcher_secret.write(secret)?,
        ])
    }
}

impl NewFile {
    fn create(directory: &Path, name: &str) -> anyhow::Result<Self> {
        let path = directory.join(name);
        ensure!(
            path.symlink_metadata().is_err(),
            "{} exists: move it away, or name another directory with --output",
            path.display()
        );
        let file = NamedTempFile::new_in(directory)
            .with_context(|| format!("cannot write to {}", directory.display()))?;
        Ok(Self { path, file })
    }

    fn write(mut self, text: &str) -> anyhow::Result<PathBuf> {
        let written = writeln!(self.file, "{text}").and_then(|()| self.file.as_file().sync_all());
        let named = written.and_then(|()| Ok(self.file.persist_noclobber(&self.path)?));
        named.with_context(|| {
            format!(
                "the clients are created, but {} is not: create others with --again",
                self.path.display()
            )
        })?;
        Ok(self.path)
    }
}

/// Creates the master key, the schema and the first signing key unless they exist, and two new API
/// clients. Only hashes of their secrets are stored. Fails if the platform has an operator's client
/// already, unless it is to get another one (`again`).
pub fn bootstrap(config: &Config, again: bool) -> BoxFuture<'_, Result<Bootstrapped, StartError>> {
    prepare(config, again).boxed()
}

async fn prepare(config: &Config, again: bool) -> Result<Bootstrapped, StartError> {
    let storage = Storage::connect(&config.database_url()?, config.database_connections).await?;
    let secret_box = open_secret_box(&storage, config, true).await?;
    let now = Clock::system().now();
    // The encrypted signing key ties the master key to this database.
    key_ring::read_or_create(&storage, &secret_box, &config.public_url, now)
        .await
        .map_err(StartError::SigningKeys)?;

    let credentials = || Credentials {
        api_key: random::token::<16>(),
        api_secret: random::token::<32>(),
    };
    let bootstrapped = Bootstrapped {
        operator_client: credentials(),
        dispatcher_client: credentials(),
    };
    let clients = [
        operator(&bootstrapped.operator_client, now),
        dispatcher(&bootstrapped.dispatcher_client, now),
    ];
    let existing = create_unless_set_up(&storage, clients, again)
        .await
        .map_err(StartError::Bootstrap)?;
    storage.close().await?;

    let enabled = existing.iter().find(|client| client.disabled_at.is_none());
    if let Some(operator) = enabled.or(existing.first()) {
        if !again {
            return Err(StartError::Misconfigured(format!(
                "this platform has been set up already, with the operator's client {}: use its secret, or create further clients for operators and dispatchers with core-service bootstrap --again if that secret is lost",
                operator.api_key
            )));
        }
        let existing: Vec<_> = existing.iter().map(|client| &*client.api_key).collect();
        tracing::warn!(
            api_key = bootstrapped.operator_client.api_key,
            existing = existing.join(" "),
            "another operator's client was created; disable those that are no longer used (delivery clients disable)"
        );
    }
    Ok(bootstrapped)
}

/// Creates API clients if there is no operator's client yet, or if `again`. Returns the operators'
/// clients that existed before, oldest first, disabled ones included.
async fn create_unless_set_up(
    storage: &Storage,
    clients: [ApiClient; 2],
    again: bool,
) -> Result<Vec<ApiClient>, Error> {
    storage
        .write(move |transaction| async move {
            // Concurrent bootstraps wait for each other: there is a key that both lock.
            storage::signing_keys::lock(&transaction).await?;
            let mut operators = storage::api_clients::list_of_platform(&transaction).await?;
            operators.retain(|client| client.scopes.contains(Scope::Admin));
            if again || operators.is_empty() {
                for client in &clients {
                    storage::api_clients::insert(&transaction, client).await?;
                }
                let created = clients.map(|client| AuditEvent {
                    id: Uuid::now_v7(),
                    created_at: client.created_at,
                    api_client_id: client.id,
                    address: None,
                    rpc: "Bootstrap".to_owned(),
                    resource: Collection::ApiClients.name(client.id),
                    store_id: None,
                });
                audit_events::insert(&transaction, created).await?;
            }
            Ok(operators)
        })
        .await
}

pub(crate) fn operator(credentials: &Credentials, now: Timestamp) -> ApiClient {
    let scopes = [Scope::TasksAll, Scope::Admin];
    new_client("Operator", &scopes, None, credentials, now)
}

pub(crate) fn dispatcher(credentials: &Credentials, now: Timestamp) -> ApiClient {
    let scopes = [Scope::Notifications];
    new_client("Webhook dispatcher", &scopes, None, credentials, now)
}

pub(crate) fn new_client(
    display_name: &str,
    scopes: &[Scope],
    store_id: Option<StoreId>,
    credentials: &Credentials,
    now: Timestamp,
) -> ApiClient {
    let scopes = Scopes::new(scopes.iter().copied());
    ApiClient {
        id: ApiClientId::new(),
        store_id,
        courier_id: None,
        display_name: display_name.to_owned(),
        api_key: credentials.api_key.clone(),
        secrets: ApiSecrets::new(SecretHash::of(&credentials.api_secret)),
        task_status: TaskStatus::default_of(&scopes),
        scopes,
        default_address: None,
        created_at: now,
        disabled_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_credentials_is_not_shown() {
        let credentials = Credentials {
            api_key: "key".to_owned(),
            api_secret: "secret".to_owned(),
        };
        let expected = r#"Credentials { api_key: "key", .. }"#;
        assert_eq!(format!("{credentials:?}"), expected);
    }
}
