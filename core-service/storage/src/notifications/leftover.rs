//! What is left pending of webhooks that were disabled. A backlog may be longer than one
//! transaction can drop in its time, least of all one that others wait for: so disabling drops
//! the beginning of it, and the rest goes little by little. A disabled webhook has no turn, so
//! nobody claims any of it meanwhile; whoever enables it drops what is left before.

use domain::{
    id::{StoreId, WebhookId},
    webhook::Webhook,
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect,
    sea_query::{ExprTrait as _, LockType},
};
use uuid::Uuid;

use super::{
    owed::{drop_owed, drop_pending},
    queue::{earliest_pending, subquery},
};

use crate::{
    ConnectionTrait, Error, Storage,
    entity::webhook::{Column, Entity},
    webhooks::{self, any_of},
};

/// How many pending notifications one transaction drops of disabled webhooks.
pub(crate) const DROPPED_AT_ONCE: u64 = 4_096;

/// Drops what is owed to a webhook that was just disabled, or the beginning of it; or all that is
/// left of one that was just enabled, or it would be sent. It is locked.
pub async fn drop_backlog(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
    now: Timestamp,
) -> Result<(), Error> {
    let most = webhook.disabled.map(|_| DROPPED_AT_ONCE);
    drop_owed(transaction, webhook.store_id, webhook.id, most, now).await
}

/// Drops some of what is left of one disabled webhook; whether there was one.
pub async fn drop_some_left(storage: &Storage, now: Timestamp) -> Result<bool, Error> {
    let Some(webhook) = find_left(storage.reader()).await? else {
        return Ok(false);
    };
    drop_some_of(storage, webhook, now).await?;
    Ok(true)
}

/// Drops all that is left of a webhook, if it is disabled: in several transactions.
pub async fn drop_left_of(
    storage: &Storage,
    webhook: (StoreId, WebhookId),
    now: Timestamp,
) -> Result<(), Error> {
    while drop_some_of(storage, webhook, now).await? == DROPPED_AT_ONCE {}
    Ok(())
}

async fn drop_some_of(
    storage: &Storage,
    webhook: (StoreId, WebhookId),
    now: Timestamp,
) -> Result<u64, Error> {
    storage
        .write(move |transaction| {
            Box::pin(async move { drop_left(transaction, webhook, now).await })
        })
        .await
}

/// A disabled webhook of which something is pending, if there is one: a look that writes nothing.
async fn find_left(
    connection: &impl ConnectionTrait,
) -> Result<Option<(StoreId, WebhookId)>, Error> {
    let found: Option<(Uuid, Uuid)> = Entity::find()
        .select_only()
        .columns([Column::StoreId, Column::Id])
        .filter(Column::DisabledAt.is_not_null())
        // One look into the index for each, however much is pending of others.
        .filter(subquery(earliest_pending()).is_not_null())
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.map(|(store_id, id)| (StoreId(store_id), WebhookId(id))))
}

/// Drops some of what is left pending of a webhook, if it is disabled. How many; fewer than
/// [`DROPPED_AT_ONCE`] when nothing is left.
async fn drop_left(
    transaction: &impl ConnectionTrait,
    webhook: (StoreId, WebhookId),
    now: Timestamp,
) -> Result<u64, Error> {
    // Locked, so that nobody enables it meanwhile.
    let disabled = Condition::all()
        .add(any_of([webhook]))
        .add(Column::DisabledAt.is_not_null());
    let locked = webhooks::lock(transaction, disabled, LockType::NoKeyUpdate).await?;
    if locked.is_empty() {
        return Ok(0);
    }
    drop_pending(transaction, webhook, Some(DROPPED_AT_ONCE), now).await
}
