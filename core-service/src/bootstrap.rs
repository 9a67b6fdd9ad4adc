//! The first API clients of a platform: an operator's, who can create all others, and the
//! dispatcher's.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    clock::Clock,
    config::Config,
    domain::{
        address::Address,
        api_client::{ApiClient, Scope, Scopes, SecretHash},
        id::{ApiClientId, StoreId},
    },
    error::Error,
    random,
    service::StartError,
    storage::{self, Storage},
    vault::Vault,
};

/// What an API client proves itself with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    pub api_key: String,
    pub api_secret: String,
}

/// The clients that [`bootstrap`] creates.
#[derive(Clone, Debug, Serialize)]
pub struct Bootstrapped {
    /// Scopes `tasks:all admin`.
    pub operator_client: Credentials,
    /// Scope `notifications`.
    pub dispatcher_client: Credentials,
}

/// Prepares an empty platform: master key, schema, first clients. Each call makes new clients;
/// their secrets are not kept.
pub async fn bootstrap(config: &Config) -> Result<Bootstrapped, StartError> {
    Vault::open_or_create(&config.master_key_file)?;
    let storage = Storage::connect(&config.database_url).await?;
    let now = Clock::system().now();
    let mut made = Vec::new();
    for (name, scopes) in [OPERATOR, DISPATCHER] {
        let credentials = Credentials {
            api_key: random::token::<16>(),
            api_secret: random::token::<32>(),
        };
        let seed = Seed::new(name, scopes);
        create(&storage, seed, &credentials, now)
            .await
            .map_err(StartError::Bootstrap)?;
        made.push(credentials);
    }
    storage.close().await?;
    let [operator_client, dispatcher_client] = made
        .try_into()
        .unwrap_or_else(|_| unreachable!("two names make two clients"));
    Ok(Bootstrapped {
        operator_client,
        dispatcher_client,
    })
}

pub(crate) const OPERATOR: (&str, &[Scope]) = ("Operator", &[Scope::TasksAll, Scope::Admin]);
pub(crate) const DISPATCHER: (&str, &[Scope]) = ("Webhook dispatcher", &[Scope::Notifications]);

/// A client to be.
pub(crate) struct Seed {
    pub(crate) store_id: Option<StoreId>,
    pub(crate) display_name: String,
    pub(crate) scopes: Scopes,
    pub(crate) default_address: Option<Address>,
}

impl Seed {
    /// A client of the platform itself.
    pub(crate) fn new(name: &str, scopes: &[Scope]) -> Self {
        Self {
            store_id: None,
            display_name: name.to_owned(),
            scopes: Scopes::new(scopes.iter().copied()),
            default_address: None,
        }
    }
}

/// Creates a client with given credentials, unless there is one with its key.
pub(crate) async fn create(
    storage: &Storage,
    seed: Seed,
    credentials: &Credentials,
    now: Timestamp,
) -> Result<(), Error> {
    let client = ApiClient {
        id: ApiClientId::new(),
        store_id: seed.store_id,
        display_name: seed.display_name,
        api_key: credentials.api_key.clone(),
        secret_hash: SecretHash::of(&credentials.api_secret),
        previous_secret: None,
        scopes: seed.scopes,
        default_address: seed.default_address,
        created_at: now,
        disabled_at: None,
    };
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
