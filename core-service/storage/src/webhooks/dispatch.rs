//! Queries of webhooks for the dispatch of notifications: subscribers, targets, locks, and the
//! disabling of several.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    event::EventName,
    id::{StoreId, WebhookId},
    webhook::{DisabledReason, WebhookKey},
    webhook_secrets::Secrets,
};
use sea_orm::sea_query::ExprTrait as _;

use super::secret_columns;
use crate::entity::{
    Instant,
    webhook::{Column, Entity, Model},
};
use crate::prelude::*;

/// The URL of a webhook, and the secrets to sign with.
#[derive(Clone, Debug)]
pub struct Target {
    pub key: WebhookKey,
    pub url: String,
    /// The URL's host and port.
    pub host: String,
    pub secrets: Secrets,
}

pub(crate) fn key(store_id: Uuid, webhook_id: Uuid) -> WebhookKey {
    WebhookKey {
        store_id: StoreId(store_id),
        webhook_id: WebhookId(webhook_id),
    }
}

impl TryFrom<Model> for Target {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        Ok(Self {
            key: key(row.store_id, row.id),
            url: row.url.clone(),
            host: row.host.clone(),
            secrets: secret_columns::from_row(row)?,
        })
    }
}

/// Selects the enabled webhooks of stores, over all their clients, that subscribe to some events.
pub(crate) fn subscribers(
    stores: impl IntoIterator<Item = StoreId>,
    events: &[EventName],
) -> Select<Entity> {
    Entity::find()
        .filter(Column::StoreId.is_in(padded(stores.into_iter().map(|id| id.0))))
        .filter(Column::Event.is_in(events.iter().map(|event| event.as_str())))
        .filter(Column::DisabledAt.is_null())
}

/// Whether any of the webhooks is enabled and has had no success since an instant.
pub(crate) async fn is_any_failing_since(
    connection: &impl ConnectionTrait,
    webhooks: &[WebhookKey],
    since: Timestamp,
) -> Result<bool, Error> {
    let failing = Entity::find()
        .filter(any_of(webhooks.iter().copied()))
        .filter(Column::FailingSince.lte(Instant::from(since)))
        .filter(Column::DisabledAt.is_null());
    rows::exist(connection, failing).await
}

/// The keys of the webhooks that a query selects.
pub(crate) async fn keys(
    connection: &impl ConnectionTrait,
    query: Select<Entity>,
) -> Result<Vec<WebhookKey>, Error> {
    let columns = query.select_only().columns([Column::StoreId, Column::Id]);
    let keys: Vec<(Uuid, Uuid)> = columns.into_tuple().all(connection).await?;
    Ok(keys
        .into_iter()
        .map(|(store_id, id)| key(store_id, id))
        .collect())
}

/// Locks webhooks in the order that all transactions follow. Returns those that exist. A
/// transaction calls this once, with the strongest lock that it needs: to lock more webhooks
/// later, or the same ones with a stronger lock, could deadlock.
pub(crate) async fn lock(
    transaction: &impl ConnectionTrait,
    condition: Condition,
    strength: LockType,
) -> Result<BTreeSet<WebhookKey>, Error> {
    let query = in_lock_order(condition).lock(strength);
    Ok(keys(transaction, query).await?.into_iter().collect())
}

/// Webhooks in the order in which all transactions lock them.
pub(crate) fn in_lock_order(condition: Condition) -> Select<Entity> {
    Entity::find()
        .filter(condition)
        .order_by_asc(Column::StoreId)
        .order_by_asc(Column::Id)
}

/// Disables webhooks. The caller has locked them against transactions that enqueue. Returns those that
/// were enabled.
pub(crate) async fn disable(
    connection: &impl ConnectionTrait,
    webhooks: impl IntoIterator<Item = WebhookKey>,
    reason: DisabledReason,
    now: Timestamp,
) -> Result<Vec<WebhookKey>, Error> {
    let disabled = Entity::update_many()
        .col_expr(Column::DisabledAt, Expr::value(Instant::from(now)))
        .col_expr(Column::DisabledReason, Expr::value(reason.as_str()))
        .filter(any_of(webhooks))
        .filter(Column::DisabledAt.is_null())
        .exec_with_returning(connection)
        .await?;
    let keys = disabled.iter().map(|row| key(row.store_id, row.id));
    Ok(keys.collect())
}

pub(crate) fn any_of(webhooks: impl IntoIterator<Item = WebhookKey>) -> Condition {
    let mut by_store = BTreeMap::<_, BTreeSet<_>>::new();
    for webhook in webhooks {
        let ids = by_store.entry(webhook.store_id.0).or_default();
        ids.insert(webhook.webhook_id.0);
    }
    padded(by_store)
        .into_iter()
        .fold(Condition::any(), |any, (store_id, ids)| {
            any.add(
                Column::StoreId
                    .eq(store_id)
                    .and(Column::Id.is_in(padded(ids))),
            )
        })
}
