//! Eligible webhooks: those whose notifications a claim may take. A claim selects webhooks before
//! notifications, so that a webhook with a long backlog does not delay others.

use std::time::Duration;

use domain::{
    id::{StoreId, WebhookId},
    scheduling::{ClaimBudget, IN_FLIGHT_WINDOW, LEASE_DURATION, ReceiverHealth},
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, FromQueryResult as _, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait as _,
    sea_query::{CaseStatement, Expr, ExprTrait as _, LockBehavior, LockType, SimpleExpr},
};
use uuid::Uuid;

use super::{
    queue::{notifications_of_outer_webhook, subquery},
    receiver_health,
    state::is_leased,
};

use crate::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        notification,
        webhook::{Column, Entity, Model},
    },
    lease_clock,
    webhooks::{Target, WebhookKey},
};

/// The remaining time of a lease when its in-flight window ends.
pub(super) const LEASE_AFTER_WINDOW: Duration = LEASE_DURATION.saturating_sub(IN_FLIGHT_WINDOW);

/// The largest number of webhooks in any claim.
const MAX_WEBHOOKS: u32 = 64;

/// The largest number of webhooks in a claim within a budget.
pub(super) fn max_webhooks(budget: &ClaimBudget) -> u32 {
    std::cmp::min(budget.free, MAX_WEBHOOKS)
}

/// A webhook whose notifications a claim may take.
#[derive(Clone, Debug)]
pub(super) struct EligibleWebhook {
    pub(super) key: WebhookKey,
    pub(super) receiver_health: ReceiverHealth,
    pub(super) target: Target,
    /// How many of its notifications were in flight before it was locked.
    pub(super) in_flight: u32,
}

/// Whether any notification is due, whether or not there is capacity for it. Writes nothing.
pub async fn is_any_due(connection: &impl ConnectionTrait, now: Timestamp) -> Result<bool, Error> {
    exists(connection, is_due(now)).await
}

/// Whether any webhook is eligible. Writes nothing.
pub async fn is_any_claimable(
    connection: &impl ConnectionTrait,
    budget: &ClaimBudget,
    now: Timestamp,
) -> Result<bool, Error> {
    exists(connection, is_eligible(connection, budget, now)).await
}

async fn exists(connection: &impl ConnectionTrait, condition: Condition) -> Result<bool, Error> {
    let found: Option<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(condition)
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// Locks the eligible webhooks, in the order of the queue. Their in-flight counts may have changed
/// just before the lock ([`due_batches`](super::due_batch::due_batches) counts again). Until the
/// transaction ends, no other transaction claims their notifications: concurrent claims skip each
/// other's webhooks on `PostgreSQL`, and run one after the other on `SQLite`.
pub(super) async fn eligible_webhooks(
    transaction: &impl ConnectionTrait,
    budget: &ClaimBudget,
    now: Timestamp,
) -> Result<Vec<EligibleWebhook>, Error> {
    let eligible = Entity::find()
        .expr_as(in_flight(transaction), "in_flight")
        .filter(is_eligible(transaction, budget, now))
        .order_by_asc(Column::NextDueAt)
        .limit(u64::from(max_webhooks(budget)))
        // A weaker lock than `FOR UPDATE`: transactions that enqueue don't wait for it.
        .lock_with_behavior(LockType::NoKeyUpdate, LockBehavior::SkipLocked)
        .into_query();
    let rows = transaction.query_all(&eligible).await?;
    rows.iter()
        .map(|row| {
            let webhook = Model::from_query_result(row, "")?;
            let in_flight: i64 = row.try_get("", "in_flight")?;
            Ok(EligibleWebhook {
                key: (StoreId(webhook.store_id), WebhookId(webhook.id)),
                receiver_health: receiver_health::from_was_slow(webhook.was_slow),
                in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
                target: webhook.try_into()?,
            })
        })
        .collect()
}

fn is_eligible(
    connection: &impl ConnectionTrait,
    budget: &ClaimBudget,
    now: Timestamp,
) -> Condition {
    let is_healthy = Column::WasSlow.eq(false);
    let mut has_budget = Condition::any().add(is_healthy.clone());
    if budget.free_for_unknown > 0 {
        has_budget = has_budget.add(Column::WasSlow.is_null());
    }
    if budget.free_for_slow > 0 {
        has_budget = has_budget.add(Column::WasSlow.eq(true));
    }
    let limit_of = |health| i64::from(budget.capacity.per_webhook(health));
    // Slow receivers have the limit of unknown ones.
    let limit = CaseStatement::new()
        .case(is_healthy, limit_of(ReceiverHealth::Healthy))
        .finally(limit_of(ReceiverHealth::Unknown));
    is_due(now)
        .add(has_budget)
        .add(in_flight(connection).lt::<SimpleExpr>(limit.into()))
}

fn is_due(now: Timestamp) -> Condition {
    Condition::all()
        .add(Column::NextDueAt.lte(Instant::from(now)))
        .add(Column::DisabledAt.is_null())
}

/// The number of notifications in flight of the webhook in the outer statement. If its receiver is
/// healthy, a lease past the in-flight window does not count: its dispatcher has died.
fn in_flight(connection: &impl ConnectionTrait) -> SimpleExpr {
    let is_counted = Condition::any()
        .add(Column::WasSlow.is_null())
        .add(Column::WasSlow.eq(true))
        .add(is_within_in_flight_window(connection));
    let mut count = notifications_of_outer_webhook();
    count
        .expr(Expr::cust("COUNT(*)"))
        .cond_where(is_leased())
        .cond_where(is_counted);
    subquery(count)
}

/// Whether a leased notification is within the in-flight window.
pub(super) fn is_within_in_flight_window(connection: &impl ConnectionTrait) -> SimpleExpr {
    let end_of_window = lease_clock::expiry(connection, LEASE_AFTER_WINDOW);
    Expr::col(notification::Column::LeaseExpiresAt).gt(end_of_window)
}
