//! Webhooks, and the receiver hosts of unproven ones. Secrets are encrypted.

mod dispatch;
pub(super) mod receiver_hosts;
pub mod secret_columns;

use domain::{
    id::{ApiClientId, StoreId, WebhookId},
    webhook::{Disabled, DisabledReason, Webhook, WebhookKey},
    webhook_secrets::Secrets,
};

pub(super) use self::dispatch::{
    any_of, disable, in_lock_order, is_any_failing_since, key, keys, lock, subscribers,
};
pub use self::{
    dispatch::Target,
    receiver_hosts::{HostOutcomes, record_host_outcomes, release_all_hosts, remove_old_failures},
};
use super::entity::{
    Instant,
    webhook::{ActiveModel, Column, Entity, Model},
};
use crate::prelude::*;

/// Inserts a webhook. It is proven if another one of its store at the same host is, and no unproven
/// one has failed there lately.
pub async fn insert(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    secrets: &Secrets,
) -> Result<(), Error> {
    let proven = Entity::find()
        .filter(Column::StoreId.eq(webhook.store_id.0))
        .filter(Column::Host.eq(webhook.host.as_str()))
        .filter(Column::IsProven.eq(true));
    let is_proven = rows::exist(connection, proven).await?
        && !receiver_hosts::has_failed(connection, webhook.store_id, &webhook.host).await?;
    let row = ActiveModel {
        api_client_id: Set(webhook.api_client_id.0),
        event: Set(webhook.event.clone()),
        url: Set(webhook.url.clone()),
        host: Set(webhook.host.clone()),
        is_proven: Set(is_proven),
        encrypted_secret: Set(secrets.newest.clone()),
        encrypted_retired_secrets: Set(secret_columns::pack(&secrets.retired)?),
        overlap_ends_at: Set(secrets.overlap_ends_at(webhook.created_at).map(Into::into)),
        created_at: Set(webhook.created_at.into()),
        ..disabled_columns(webhook)
    };
    rows::insert(connection, row).await
}

/// The key of a webhook, and the columns of when and why it is disabled.
fn disabled_columns(webhook: &Webhook) -> ActiveModel {
    let reason = |disabled: Disabled| disabled.reason.as_str().to_owned();
    ActiveModel {
        store_id: Set(webhook.store_id.0),
        id: Set(webhook.id.0),
        disabled_at: Set(webhook.disabled.map(|disabled| disabled.at.into())),
        disabled_reason: Set(webhook.disabled.map(reason)),
        disabled_from: Set(webhook.last_disabled_period.map(|(from, _)| from.into())),
        disabled_until: Set(webhook.last_disabled_period.map(|(_, until)| until.into())),
        ..Default::default()
    }
}

/// A client's own webhook.
pub async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    client: ApiClientId,
    id: WebhookId,
) -> Result<Option<Webhook>, Error> {
    let query = Entity::find()
        .filter(of_client(store_id, client))
        .filter(Column::Id.eq(id.0));
    rows::first(connection, query).await
}

fn of_client(store_id: StoreId, client: ApiClientId) -> Condition {
    Condition::all()
        .add(Column::StoreId.eq(store_id.0))
        .add(Column::ApiClientId.eq(client.0))
}

/// A webhook of any store: for operators, and to look up its store.
pub async fn find_of_any_store(
    connection: &impl ConnectionTrait,
    id: WebhookId,
) -> Result<Option<Webhook>, Error> {
    rows::first(connection, Entity::find().filter(Column::Id.eq(id.0))).await
}

/// A store's webhook with its secrets, locked until the transaction ends.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    key: WebhookKey,
) -> Result<Option<(Webhook, Secrets)>, Error> {
    let row = Entity::find_by_id((key.store_id.0, key.webhook_id.0))
        .lock_exclusive()
        .one(transaction)
        .await?;
    row.map(|row| {
        Ok((
            Webhook::try_from(row.clone())?,
            secret_columns::from_row(row)?,
        ))
    })
    .transpose()
}

/// Saves whether a webhook is disabled, and the last period in which it was.
pub async fn save_disabled(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
) -> Result<(), Error> {
    if webhook.disabled.is_none() {
        // Otherwise a client could keep a webhook proven whose receiver only fails, by enabling it
        // again.
        let update = "UPDATE webhooks SET is_proven = FALSE
            WHERE store_id = $1 AND id = $2 AND failing_since IS NOT NULL";
        let key = [webhook.store_id.0.into(), webhook.id.0.into()];
        rows::execute(transaction, update, key).await?;
    }
    let mut row = disabled_columns(webhook);
    if webhook.disabled.is_none() {
        // Failures from before it was enabled must not disable it again.
        row.failing_since = Set(None);
    }
    rows::update(transaction, row).await
}

/// Saves the last period in which a webhook was disabled. The webhook is locked.
pub async fn save_disabled_period(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
) -> Result<(), Error> {
    rows::update(transaction, disabled_columns(webhook)).await
}

/// The webhooks of all clients of a store, oldest first: for operators.
pub async fn list_of_store(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<Vec<Webhook>, Error> {
    let of_store = Condition::all().add(Column::StoreId.eq(store_id.0));
    rows::all(connection, oldest_first(of_store)).await
}

/// The webhooks of all stores whose attempts fail, with since when, those that fail for longest first: for operators.
pub async fn list_failing(
    connection: &impl ConnectionTrait,
    limit: u64,
) -> Result<Vec<(Webhook, Timestamp)>, Error> {
    let query = Entity::find()
        .filter(Column::FailingSince.is_not_null())
        .order_by_asc(Column::FailingSince)
        .order_by_asc(Column::Id)
        .limit(limit);
    let rows = query.all(connection).await?.into_iter();
    let failing = rows.filter_map(|row| Some((row.failing_since?, row)));
    failing
        .map(|(since, row)| Ok((row.try_into()?, since.try_into()?)))
        .collect()
}

fn oldest_first(condition: Condition) -> Select<Entity> {
    let query = Entity::find().filter(condition);
    query
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
}

/// A client's own webhooks, oldest first.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    client: ApiClientId,
) -> Result<Vec<Webhook>, Error> {
    rows::all(connection, oldest_first(of_client(store_id, client))).await
}

/// Disables the enabled webhooks of a client as an operator does. Returns how many there were.
pub async fn disable_of_client(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    client: ApiClientId,
    now: Timestamp,
) -> Result<usize, Error> {
    let of_client = of_client(store_id, client);
    let locked = dispatch::lock(transaction, of_client, LockType::Update).await?;
    if locked.is_empty() {
        return Ok(0);
    }
    let disabled = dispatch::disable(transaction, locked, DisabledReason::Operator, now).await?;
    Ok(disabled.len())
}

/// Deletes a client's own webhook. Returns whether there was one.
pub async fn delete(
    connection: &impl ConnectionTrait,
    key: WebhookKey,
    client: ApiClientId,
) -> Result<bool, Error> {
    let deleted = Entity::delete_many()
        .filter(of_client(key.store_id, client))
        .filter(Column::Id.eq(key.webhook_id.0))
        .exec(connection)
        .await?;
    Ok(deleted.rows_affected > 0)
}

impl TryFrom<Model> for Webhook {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        Ok(Self {
            id: WebhookId(row.id),
            store_id: StoreId(row.store_id),
            api_client_id: ApiClientId(row.api_client_id),
            event: row.event,
            url: row.url,
            host: row.host,
            created_at: row.created_at.try_into()?,
            overlap_ends_at: Instant::optional(row.overlap_ends_at)?,
            last_disabled_period: Instant::optional(row.disabled_from)?
                .zip(Instant::optional(row.disabled_until)?),
            disabled: Instant::optional(row.disabled_at)?.map(|at| Disabled {
                at,
                reason: row
                    .disabled_reason
                    .as_deref()
                    .and_then(|name| name.parse().ok())
                    // Absent, or stored by a newer version.
                    .unwrap_or(DisabledReason::Gone),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// After a rollback.
    #[tokio::test]
    async fn a_webhook_for_an_event_of_a_newer_version_is_listed_with_the_others() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let mut webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
            webhook.event = "delivery.newer".to_owned();
            let secrets = Secrets::new(b"encrypted".to_vec());
            insert(storage.reader(), &webhook, &secrets).await.unwrap();

            let listed = list_of_store(storage.reader(), webhook.store_id).await;

            assert_eq!(listed.unwrap()[0].event, webhook.event);
        }
    }
}
