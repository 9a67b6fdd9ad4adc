//! The first API clients of a platform: an operator's, who can create all others, and the
//! dispatcher's.

use domain::{
    api_client::{ApiClient, Scope, Scopes, SecretHash},
    id::{ApiClientId, StoreId},
};
use jiff::Timestamp;
use process::clock::Clock;
use process::random;
use serde::{Deserialize, Serialize};
use storage::Storage;

use crate::{
    config::Config,
    error::Error,
    grpc::KeyRing,
    service::{StartError, open_vault},
};

/// What an API client proves itself with.
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

/// The clients that [`bootstrap`] creates.
#[derive(Clone, Debug, Serialize)]
pub struct Bootstrapped {
    /// Scopes `tasks:all admin`.
    pub operator_client: Credentials,
    /// Scope `notifications`.
    pub dispatcher_client: Credentials,
}

/// Prepares an empty platform: master key, schema, first signing key, first clients. Each call
/// makes new clients; their secrets are not kept.
pub async fn bootstrap(config: &Config) -> Result<Bootstrapped, StartError> {
    let storage = Storage::connect(&config.database_url()?).await?;
    let vault = open_vault(&storage, &config.master_key_file, true).await?;
    let clock = Clock::system();
    let now = clock.now();
    // From now on it is known which master key belongs to this database.
    KeyRing::load(&storage, &vault, &clock, config.public_url.clone())
        .await
        .map_err(StartError::SigningKeys)?;
    let make = async |role| {
        let credentials = Credentials {
            api_key: random::token::<16>(),
            api_secret: random::token::<32>(),
        };
        create(&storage, client(role, None, &credentials, now))
            .await
            .map_err(StartError::Bootstrap)?;
        Ok::<_, StartError>(credentials)
    };
    let bootstrapped = Bootstrapped {
        operator_client: make(OPERATOR).await?,
        dispatcher_client: make(DISPATCHER).await?,
    };
    storage.close().await?;
    Ok(bootstrapped)
}

pub(crate) const OPERATOR: (&str, &[Scope]) = ("Operator", &[Scope::TasksAll, Scope::Admin]);
pub(crate) const DISPATCHER: (&str, &[Scope]) = ("Webhook dispatcher", &[Scope::Notifications]);

/// A client with given credentials.
pub(crate) fn client(
    (display_name, scopes): (&str, &[Scope]),
    store_id: Option<StoreId>,
    credentials: &Credentials,
    now: Timestamp,
) -> ApiClient {
    ApiClient {
        id: ApiClientId::new(),
        store_id,
        display_name: display_name.to_owned(),
        api_key: credentials.api_key.clone(),
        secret_hash: SecretHash::of(&credentials.api_secret),
        previous_secret: None,
        scopes: Scopes::new(scopes.iter().copied()),
        default_address: None,
        created_at: now,
        disabled_at: None,
    }
}

/// Creates a client, unless there is one with its key.
pub(crate) async fn create(storage: &Storage, client: ApiClient) -> Result<(), Error> {
    storage
        .write(move |transaction| {
            let client = client.clone();
            Box::pin(async move {
                storage::api_clients::insert_if_absent(transaction, &client).await?;
                Ok(())
            })
        })
        .await
}
