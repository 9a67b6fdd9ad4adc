//! API clients.

use domain::{
    api_client::{ApiClient, Scopes, SecretHash},
    id::{ApiClientId, StoreId},
};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::OnConflict,
};

use super::{
    ConnectionTrait, Error,
    entity::{
        api_client::{ActiveModel, Column, Entity, Model},
        instant,
    },
};

/// Looks up a client by its key, without a store: the key identifies the store.
pub async fn find_by_key(
    connection: &impl ConnectionTrait,
    api_key: &str,
) -> Result<Option<ApiClient>, Error> {
    // No issued key has other characters, and PostgreSQL rejects some of them (NUL).
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !api_key.bytes().all(is_key) {
        return Ok(None);
    }
    let row = Entity::find()
        .filter(Column::ApiKey.eq(api_key))
        .one(connection)
        .await?;
    row.map(ApiClient::try_from).transpose()
}

pub async fn find(
    connection: &impl ConnectionTrait,
    id: ApiClientId,
) -> Result<Option<ApiClient>, Error> {
    let row = Entity::find_by_id(id.0).one(connection).await?;
    row.map(ApiClient::try_from).transpose()
}

/// As [`find`], locked until the transaction ends.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    id: ApiClientId,
) -> Result<Option<ApiClient>, Error> {
    let row = Entity::find_by_id(id.0)
        .lock_exclusive()
        .one(transaction)
        .await?;
    row.map(ApiClient::try_from).transpose()
}

/// The clients of a store, or of all stores, oldest first.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: Option<StoreId>,
) -> Result<Vec<ApiClient>, Error> {
    let rows = Entity::find()
        .apply_if(store_id, |query, store_id| {
            query.filter(Column::StoreId.eq(store_id.0))
        })
        .order_by_asc(Column::Id)
        .all(connection)
        .await?;
    rows.into_iter().map(ApiClient::try_from).collect()
}

pub async fn insert(connection: &impl ConnectionTrait, client: &ApiClient) -> Result<(), Error> {
    Entity::insert(row(client))
        .exec_without_returning(connection)
        .await?;
    Ok(())
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

pub async fn update(connection: &impl ConnectionTrait, client: &ApiClient) -> Result<(), Error> {
    Entity::update(row(client)).exec(connection).await?;
    Ok(())
}

fn row(client: &ApiClient) -> ActiveModel {
    let previous = client.previous_secret;
    ActiveModel {
        id: Set(client.id.0),
        store_id: Set(client.store_id.map(|id| id.0)),
        display_name: Set(client.display_name.clone()),
        api_key: Set(client.api_key.clone()),
        secret_hash: Set(client.secret_hash.0.to_vec()),
        previous_secret_hash: Set(previous.map(|(hash, _)| hash.0.to_vec())),
        previous_secret_expires_at: Set(previous.map(|(_, expires_at)| expires_at.into())),
        scopes: Set(client.scopes.to_string()),
        default_address: Set(client.default_address.clone().map(Into::into)),
        created_at: Set(client.created_at.into()),
        disabled_at: Set(client.disabled_at.map(Into::into)),
    }
}

impl TryFrom<Model> for ApiClient {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        let previous_hash = row.previous_secret_hash.map(secret_hash).transpose()?;
        let previous_expiry = instant::optional(row.previous_secret_expires_at)?;
        Ok(Self {
            id: ApiClientId(row.id),
            store_id: row.store_id.map(StoreId),
            display_name: row.display_name,
            api_key: row.api_key,
            secret_hash: secret_hash(row.secret_hash)?,
            previous_secret: previous_hash.zip(previous_expiry),
            scopes: Scopes::parse(&row.scopes)
                .map_err(|error| Error::inconsistent("api_clients", error))?,
            default_address: row.default_address.map(TryInto::try_into).transpose()?,
            created_at: row.created_at.try_into()?,
            disabled_at: instant::optional(row.disabled_at)?,
        })
    }
}

fn secret_hash(bytes: Vec<u8>) -> Result<SecretHash, Error> {
    bytes.try_into().map(SecretHash).map_err(|_| {
        Error::inconsistent(
            "api_clients",
            "a secret hash of a length other than 32 bytes",
        )
    })
}
