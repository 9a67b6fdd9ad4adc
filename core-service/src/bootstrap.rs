//! Prepares an empty platform and creates its first two API clients: the operator, with the right
//! to create all others, and the webhook dispatcher.

use domain::{
    api_client::{ApiClient, Scope, Scopes},
    api_secrets::{ApiSecrets, SecretHash},
    id::{ApiClientId, StoreId},
};
use jiff::Timestamp;
use process::clock::Clock;
use process::random;
use serde::{Deserialize, Serialize};
use storage::Storage;

use crate::{
    config::Config, error::Error, grpc::read_or_create_signing_keys, start_error::StartError,
    startup::open_secret_box,
};

/// The key and secret of an API client.
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

/// Creates the master key, the schema and the first signing key unless they exist, and two new API
/// clients. Only hashes of their secrets are stored.
pub async fn bootstrap(config: &Config) -> Result<Bootstrapped, StartError> {
    let storage = Storage::connect(&config.database_url()?).await?;
    let secret_box = open_secret_box(&storage, &config.master_key_file, true).await?;
    let clock = Clock::system();
    let now = clock.now();
    // The encrypted signing key ties the master key to this database.
    read_or_create_signing_keys(&storage, &secret_box, &config.public_url, now)
        .await
        .map_err(StartError::SigningKeys)?;
    let create_client = async |role| {
        let credentials = Credentials {
            api_key: random::token::<16>(),
            api_secret: random::token::<32>(),
        };
        create(&storage, new_client(role, None, &credentials, now))
            .await
            .map_err(StartError::Bootstrap)?;
        Ok::<_, StartError>(credentials)
    };
    let bootstrapped = Bootstrapped {
        operator_client: create_client(OPERATOR).await?,
        dispatcher_client: create_client(DISPATCHER).await?,
    };
    storage.close().await?;
    Ok(bootstrapped)
}

pub(crate) const OPERATOR: (&str, &[Scope]) = ("Operator", &[Scope::TasksAll, Scope::Admin]);
pub(crate) const DISPATCHER: (&str, &[Scope]) = ("Webhook dispatcher", &[Scope::Notifications]);

/// A new API client with the given credentials.
pub(crate) fn new_client(
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
        secrets: ApiSecrets::new(SecretHash::of(&credentials.api_secret)),
        scopes: Scopes::new(scopes.iter().copied()),
        default_address: None,
        created_at: now,
        disabled_at: None,
    }
}

/// Creates an API client, unless its key exists.
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
