//! API clients.

use std::collections::BTreeSet;

use domain::{
    api_client::{ApiClient, Scopes, TaskStatus},
    api_secrets::{ApiSecrets, RetiredSecret, SecretHash},
    id::{ApiClientId, CourierId, StoreId},
};

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Storage,
    entity::{
        AddressJson, ByPosition as _, Instant,
        api_client::{ActiveModel, Column, Entity, Model},
    },
    shared_reads::SharedRow,
};
use crate::prelude::*;

/// Looks up a client by its key, without a store: the key identifies the store.
pub async fn find_by_key(storage: &Storage, api_key: &str) -> Result<Option<ApiClient>, Error> {
    // No issued key has other characters, and PostgreSQL rejects some of them (NUL).
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !api_key.bytes().all(is_key) {
        return Ok(None);
    }
    storage.api_clients.find(api_key.to_owned()).await
}

impl SharedRow for ApiClient {
    type Key = String;

    const FROM: &'static str = "api_clients";
    const KEY: &'static [&'static str] = &["api_key"];

    fn columns() -> Vec<String> {
        rows::columns::<Entity>().collect()
    }

    fn values(api_key: &Self::Key) -> Vec<Value> {
        vec![api_key.as_str().into()]
    }

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr> {
        row.try_get_by_index(Column::ApiKey as usize)
    }

    fn read(row: &QueryResult) -> Result<Self, Error> {
        Model::at(row, 0)?.try_into()
    }
}

pub async fn find(
    connection: &impl ConnectionTrait,
    id: ApiClientId,
) -> Result<Option<ApiClient>, Error> {
    rows::first(connection, Entity::find_by_id(id.0)).await
}

/// Those of these clients that exist.
pub async fn find_all(
    connection: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = ApiClientId>,
) -> Result<Vec<ApiClient>, Error> {
    let ids: BTreeSet<_> = ids.into_iter().map(|id| id.0).collect();
    rows::all(
        connection,
        Entity::find().filter(Column::Id.is_in(padded(ids))),
    )
    .await
}

/// Like [`find`], locked until the transaction ends.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    id: ApiClientId,
) -> Result<Option<ApiClient>, Error> {
    rows::first(transaction, Entity::find_by_id(id.0).lock_exclusive()).await
}

/// The clients of a store, or all clients, oldest first.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: Option<StoreId>,
) -> Result<Vec<ApiClient>, Error> {
    let query = Entity::find().apply_if(store_id, |query, store_id| {
        query.filter(Column::StoreId.eq(store_id.0))
    });
    rows::all(connection, query.order_by_asc(Column::Id)).await
}

/// The clients that belong to no store, oldest first.
pub async fn list_of_platform(connection: &impl ConnectionTrait) -> Result<Vec<ApiClient>, Error> {
    let query = Entity::find().filter(Column::StoreId.is_null());
    rows::all(connection, query.order_by_asc(Column::Id)).await
}

pub async fn insert(connection: &impl ConnectionTrait, client: &ApiClient) -> Result<(), Error> {
    rows::insert(connection, row(client)).await
}

/// Inserts a client, unless its key exists.
pub async fn insert_if_absent(
    connection: &impl ConnectionTrait,
    client: &ApiClient,
) -> Result<(), Error> {
    Entity::insert(row(client))
        .on_conflict(OnConflict::column(Column::ApiKey).do_nothing().to_owned())
        .exec_without_returning(connection)
        .await?;
    Ok(())
}

/// Updates a client, but its scopes and its `task_status`: they never change, and those of a newer version must
/// remain.
pub async fn update(connection: &impl ConnectionTrait, client: &ApiClient) -> Result<(), Error> {
    let row = ActiveModel {
        scopes: NotSet,
        task_status: NotSet,
        ..row(client)
    };
    rows::update(connection, row).await
}

fn row(client: &ApiClient) -> ActiveModel {
    ActiveModel {
        id: Set(client.id.0),
        store_id: Set(client.store_id.map(|id| id.0)),
        display_name: Set(client.display_name.clone()),
        api_key: Set(client.api_key.clone()),
        secret_hash: Set(client.secrets.current.0.to_vec()),
        replaced_secrets: Set(pack(&client.secrets.retired)),
        scopes: Set(client.scopes.to_string()),
        default_address: Set(client.default_address.clone().map(AddressJson)),
        created_at: Set(client.created_at.into()),
        disabled_at: Set(client.disabled_at.map(Into::into)),
        courier_id: Set(client.courier_id.map(|id| id.0)),
        task_status: Set(Some(client.task_status.as_str().to_owned())),
    }
}

impl TryFrom<Model> for ApiClient {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        let retired = unpack(&row.replaced_secrets)
            .ok_or_else(|| Error::inconsistent("api_clients", "malformed retired secrets"))?;
        let scopes = Scopes::parse_known(&row.scopes);
        let task_status = row.task_status.and_then(|name| name.parse().ok());
        Ok(Self {
            id: ApiClientId(row.id),
            store_id: row.store_id.map(StoreId),
            courier_id: row.courier_id.map(CourierId),
            display_name: row.display_name,
            api_key: row.api_key,
            secrets: ApiSecrets {
                current: secret_hash(row.secret_hash)?,
                retired,
            },
            task_status: task_status.unwrap_or_else(|| TaskStatus::default_of(&scopes)),
            scopes,
            default_address: row.default_address.map(|address| address.0),
            created_at: row.created_at.try_into()?,
            disabled_at: Instant::optional(row.disabled_at)?,
        })
    }
}

/// Packs retired secrets into one value: each the hash, then the expiry in microseconds (8 bytes).
fn pack(retired: &[RetiredSecret]) -> Vec<u8> {
    let mut packed = Vec::new();
    for secret in retired {
        packed.extend(secret.hash.0);
        packed.extend(secret.expires_at.as_microsecond().to_be_bytes());
    }
    packed
}

fn unpack(mut packed: &[u8]) -> Option<Vec<RetiredSecret>> {
    let mut retired = Vec::new();
    while !packed.is_empty() {
        let (hash, rest) = packed.split_first_chunk()?;
        let (expiry, rest) = rest.split_first_chunk()?;
        retired.push(RetiredSecret {
            hash: SecretHash(*hash),
            expires_at: Timestamp::from_microsecond(i64::from_be_bytes(*expiry)).ok()?,
        });
        packed = rest;
    }
    Some(retired)
}

fn secret_hash(bytes: Vec<u8>) -> Result<SecretHash, Error> {
    bytes.try_into().map(SecretHash).map_err(|_| {
        Error::inconsistent(
            "api_clients",
            "a secret hash of a length other than 32 bytes",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// A rollback must neither fail for a scope or a `task_status` of the newer version nor lose it.
    #[tokio::test]
    async fn what_a_newer_version_has_named_is_ignored_and_kept() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let mut client = ApiClient {
                id: ApiClientId::new(),
                store_id: None,
                courier_id: None,
                display_name: "Board".to_owned(),
                api_key: "key".to_owned(),
                secrets: ApiSecrets::new(SecretHash::of("secret")),
                scopes: Scopes::parse("dispatch").unwrap(),
                task_status: TaskStatus::Specified,
                default_address: None,
                created_at: Timestamp::UNIX_EPOCH,
                disabled_at: None,
            };
            insert(storage.reader(), &client).await.unwrap();
            let scopes = async |sql: &str| rows::value::<String>(storage.reader(), sql).await;
            let newer = "UPDATE api_clients SET scopes = 'dispatch newer', task_status = 'newer' RETURNING scopes";
            scopes(newer).await.unwrap();

            let listed = list_of_platform(storage.reader()).await.unwrap();
            assert_eq!(
                listed[0].task_status,
                TaskStatus::Full,
                "the default of its scopes"
            );
            client.display_name = "Renamed".to_owned();
            update(storage.reader(), &client).await.unwrap();

            assert_eq!(listed[0].scopes, client.scopes);
            let kept = scopes("SELECT scopes || ' ' || task_status FROM api_clients").await;
            assert_eq!(kept.unwrap(), "dispatch newer newer");
        }
    }

    #[test]
    fn packed_secrets_are_unpacked_unchanged() {
        let secret = |number: u8| RetiredSecret {
            hash: SecretHash([number; 32]),
            expires_at: Timestamp::from_microsecond(-1 - i64::from(number)).unwrap(),
        };
        for secrets in [vec![], vec![secret(1)], vec![secret(1), secret(255)]] {
            assert_eq!(unpack(&pack(&secrets)), Some(secrets));
        }
        let packed = pack(&[secret(1)]);
        assert_eq!(unpack(&packed[..39]), None);
        assert_eq!(unpack(&packed[1..]), None);
    }
}
