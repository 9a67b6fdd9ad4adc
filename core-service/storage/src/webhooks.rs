//! Webhooks, their secrets sealed.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    event::EventName,
    id::{ApiClientId, StoreId, WebhookId},
    webhook::{Disabled, DisabledReason, Webhook},
    webhook_secrets::Secrets,
};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait as _, LockType},
};
use uuid::Uuid;

use super::{
    ConnectionTrait, Error,
    entity::{
        instant::{self, Instant},
        webhook::{ActiveModel, Column, Entity, Model},
    },
    padding::padded,
    webhook_secrets,
};

pub async fn insert(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    secrets: &Secrets,
) -> Result<(), Error> {
    let row = ActiveModel {
        store_id: Set(webhook.store_id.0),
        id: Set(webhook.id.0),
        api_client_id: Set(webhook.api_client_id.0),
        event: Set(webhook.event.as_str().to_owned()),
        url: Set(webhook.url.clone()),
        sealed_secret: Set(secrets.newest().to_vec()),
        sealed_retired_secrets: Set(webhook_secrets::pack(secrets.retired())?),
        overlap_ends_at: Set(secrets.overlap_ends_at(webhook.created_at).map(Into::into)),
        created_at: Set(webhook.created_at.into()),
        disabled_at: Set(webhook.disabled.map(|disabled| disabled.at.into())),
        disabled_reason: Set(webhook.disabled.map(|disabled| reason(disabled.reason))),
        missed_from: Set(webhook.missed.map(|(from, _)| from.into())),
        missed_until: Set(webhook.missed.map(|(_, until)| until.into())),
        ..Default::default()
    };
    Entity::insert(row)
        .exec_without_returning(connection)
        .await?;
    Ok(())
}

/// A client's own webhook.
pub async fn find(
    connection: &impl ConnectionTrait,
    (store_id, api_client_id): (StoreId, ApiClientId),
    id: WebhookId,
) -> Result<Option<Webhook>, Error> {
    let row = Entity::find_by_id((store_id.0, id.0))
        .filter(Column::ApiClientId.eq(api_client_id.0))
        .one(connection)
        .await?;
    row.map(Webhook::try_from).transpose()
}

/// A webhook of any store: for operators, and to find out whose it is.
pub async fn find_of_any_store(
    connection: &impl ConnectionTrait,
    id: WebhookId,
) -> Result<Option<Webhook>, Error> {
    let row = Entity::find()
        .filter(Column::Id.eq(id.0))
        .one(connection)
        .await?;
    row.map(Webhook::try_from).transpose()
}

/// A store's webhook with its secrets, and nobody else changes it until the transaction ends.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: WebhookId,
) -> Result<Option<(Webhook, Secrets)>, Error> {
    let row = Entity::find_by_id((store_id.0, id.0))
        .lock_exclusive()
        .one(transaction)
        .await?;
    row.map(|row| Ok((Webhook::try_from(row.clone())?, webhook_secrets::of(row)?)))
        .transpose()
}

/// Writes whether a webhook is enabled.
pub async fn save_disabled(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
) -> Result<(), Error> {
    let row = ActiveModel {
        store_id: Set(webhook.store_id.0),
        id: Set(webhook.id.0),
        disabled_at: Set(webhook.disabled.map(|disabled| disabled.at.into())),
        disabled_reason: Set(webhook.disabled.map(|disabled| reason(disabled.reason))),
        missed_from: Set(webhook.missed.map(|(from, _)| from.into())),
        missed_until: Set(webhook.missed.map(|(_, until)| until.into())),
        // Whoever enables it begins its days anew.
        failing_since: if webhook.disabled.is_none() {
            Set(None)
        } else {
            NotSet
        },
        ..Default::default()
    };
    Entity::update(row)
        .validate()?
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// Writes when a webhook missed something.
pub async fn save_missed(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
) -> Result<(), Error> {
    let row = ActiveModel {
        store_id: Set(webhook.store_id.0),
        id: Set(webhook.id.0),
        missed_from: Set(webhook.missed.map(|(from, _)| from.into())),
        missed_until: Set(webhook.missed.map(|(_, until)| until.into())),
        ..Default::default()
    };
    Entity::update(row)
        .validate()?
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// The webhooks of all clients of a store, oldest first: for operators.
pub async fn list_of_store(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<Vec<Webhook>, Error> {
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
        .all(connection)
        .await?;
    rows.into_iter().map(Webhook::try_from).collect()
}

/// A client's own webhooks, oldest first.
pub async fn list(
    connection: &impl ConnectionTrait,
    (store_id, api_client_id): (StoreId, ApiClientId),
) -> Result<Vec<Webhook>, Error> {
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::ApiClientId.eq(api_client_id.0))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
        .all(connection)
        .await?;
    rows.into_iter().map(Webhook::try_from).collect()
}

pub async fn count(
    connection: &impl ConnectionTrait,
    (store_id, api_client_id): (StoreId, ApiClientId),
) -> Result<u64, Error> {
    let count = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::ApiClientId.eq(api_client_id.0))
        .count(connection)
        .await?;
    Ok(count)
}

/// Removes a client's own webhook; whether there was one.
pub async fn delete(
    connection: &impl ConnectionTrait,
    (store_id, api_client_id): (StoreId, ApiClientId),
    id: WebhookId,
) -> Result<bool, Error> {
    let deleted = Entity::delete_many()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::ApiClientId.eq(api_client_id.0))
        .filter(Column::Id.eq(id.0))
        .exec(connection)
        .await?;
    Ok(deleted.rows_affected > 0)
}

/// An enabled webhook that asks for an event, with its place in the queue.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    pub(super) event: EventName,
    pub(super) next_due_at: Option<Instant>,
    pub(super) was_slow: Option<bool>,
    pub(super) target: Target,
}

/// The enabled webhooks of all clients of a store for some events.
pub(super) async fn for_events(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    events: &[EventName],
) -> Result<Vec<Subscriber>, Error> {
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::Event.is_in(events.iter().map(|event| event.as_str())))
        .filter(Column::DisabledAt.is_null())
        .all(connection)
        .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Subscriber {
                event: parse_event(&row.event)?,
                next_due_at: row.next_due_at,
                was_slow: row.was_slow,
                target: row.try_into()?,
            })
        })
        .collect()
}

/// Where to send and what to sign with.
#[derive(Clone, Debug)]
pub struct Target {
    pub webhook_id: WebhookId,
    pub url: String,
    pub secrets: Secrets,
}

#[cfg(any(test, feature = "fixture"))]
impl Target {
    /// Any target, for tests of what merely passes it on.
    pub fn example(webhook_id: WebhookId) -> Self {
        Self {
            webhook_id,
            url: "https://shop.example/hook".to_owned(),
            secrets: Secrets::new(Vec::new()),
        }
    }
}

impl TryFrom<Model> for Target {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        Ok(Self {
            webhook_id: WebhookId(row.id),
            url: row.url.clone(),
            secrets: webhook_secrets::of(row)?,
        })
    }
}

/// Whether any of some webhooks is enabled and has only failed since an instant, or for longer.
pub(super) async fn is_any_failing_since(
    connection: &impl ConnectionTrait,
    webhooks: impl IntoIterator<Item = (StoreId, WebhookId)>,
    since: Timestamp,
) -> Result<bool, Error> {
    let found: Option<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(any_of(webhooks))
        .filter(Column::FailingSince.lte(Instant::from(since)))
        .filter(Column::DisabledAt.is_null())
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// Locks webhooks, in the one order in which all transactions do so; those of them that are
/// there. Once a transaction, as strongly as it will ever need them: it may lock no more behind
/// those that it holds, nor the same ones better.
pub(super) async fn lock(
    transaction: &impl ConnectionTrait,
    which: Condition,
    strength: LockType,
) -> Result<BTreeSet<(StoreId, WebhookId)>, Error> {
    let locked: Vec<(Uuid, Uuid)> = Entity::find()
        .select_only()
        .columns([Column::StoreId, Column::Id])
        .filter(which)
        .order_by_asc(Column::StoreId)
        .order_by_asc(Column::Id)
        .lock(strength)
        .into_tuple()
        .all(transaction)
        .await?;
    let owner = |(store_id, id)| (StoreId(store_id), WebhookId(id));
    Ok(locked.into_iter().map(owner).collect())
}

/// Disables webhooks whose receivers leave no other choice, and that are locked against whoever
/// makes something pending for them. Those of them that were enabled.
pub(super) async fn disable(
    connection: &impl ConnectionTrait,
    webhooks: impl IntoIterator<Item = (StoreId, WebhookId)>,
    why: DisabledReason,
    now: Timestamp,
) -> Result<Vec<(StoreId, WebhookId)>, Error> {
    let enabled: Vec<(Uuid, Uuid)> = Entity::find()
        .select_only()
        .columns([Column::StoreId, Column::Id])
        .filter(any_of(webhooks))
        .filter(Column::DisabledAt.is_null())
        .into_tuple()
        .all(connection)
        .await?;
    let owner = |(store_id, id)| (StoreId(store_id), WebhookId(id));
    let enabled: Vec<_> = enabled.into_iter().map(owner).collect();
    if enabled.is_empty() {
        return Ok(enabled);
    }
    Entity::update_many()
        .col_expr(Column::DisabledAt, Expr::value(Instant::from(now)))
        .col_expr(Column::DisabledReason, Expr::value(reason(why)))
        .filter(any_of(enabled.iter().copied()))
        .exec(connection)
        .await?;
    Ok(enabled)
}

pub(super) fn any_of(webhooks: impl IntoIterator<Item = (StoreId, WebhookId)>) -> Condition {
    let by_store = webhooks.into_iter().fold(
        BTreeMap::<_, BTreeSet<_>>::new(),
        |mut by_store, (store_id, id)| {
            by_store.entry(store_id.0).or_default().insert(id.0);
            by_store
        },
    );
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

impl TryFrom<Model> for Webhook {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        Ok(Self {
            id: WebhookId(row.id),
            store_id: StoreId(row.store_id),
            api_client_id: ApiClientId(row.api_client_id),
            event: parse_event(&row.event)?,
            url: row.url,
            created_at: row.created_at.try_into()?,
            overlap_ends_at: instant::optional(row.overlap_ends_at)?,
            missed: instant::optional(row.missed_from)?.zip(instant::optional(row.missed_until)?),
            disabled: instant::optional(row.disabled_at)?.map(|at| Disabled {
                at,
                reason: row
                    .disabled_reason
                    .as_deref()
                    .and_then(DisabledReason::named)
                    // Before reasons were kept, a receiver that was gone was the only one.
                    .unwrap_or(DisabledReason::Gone),
            }),
        })
    }
}

fn parse_event(text: &str) -> Result<EventName, Error> {
    text.parse()
        .map_err(|error| Error::inconsistent("webhooks", error))
}

fn reason(reason: DisabledReason) -> String {
    reason.as_str().to_owned()
}
