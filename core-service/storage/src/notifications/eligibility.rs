//! Eligible webhooks: those whose notifications a claim may take. A claim selects webhooks before
//! notifications, so that a webhook with a long backlog does not delay others.

use std::time::Duration;

use domain::scheduling::{
    Candidate, ClaimBudget, IN_FLIGHT_WINDOW, LEASE_DURATION, ReceiverHealth,
};
use sea_orm::{FromQueryResult as _, sea_query::ExprTrait as _};

use super::{
    is_leased,
    queue::{OF_OUTER_WEBHOOK, subquery},
};
use crate::prelude::*;
use crate::{
    entity::{
        Instant, notification,
        webhook::{Column, Entity, Model},
    },
    lease_clock,
    webhooks::{Target, receiver_hosts},
};

/// The remaining time of a lease when its in-flight window ends.
pub(super) const LEASE_LEFT_AFTER_WINDOW: Duration =
    LEASE_DURATION.saturating_sub(IN_FLIGHT_WINDOW);

/// The largest number of webhooks in any claim.
const MAX_WEBHOOKS: u32 = 64;

/// The largest number of webhooks in a claim within a budget.
pub(super) fn max_webhooks(budget: &ClaimBudget) -> u32 {
    std::cmp::min(budget.free, MAX_WEBHOOKS)
}

/// A webhook whose notifications a claim may take.
#[derive(Clone, Debug)]
pub(super) struct EligibleWebhook {
    pub(super) receiver_health: ReceiverHealth,
    pub(super) is_proven: bool,
    pub(super) target: Target,
    /// How many of its notifications were in flight before it was locked.
    pub(super) in_flight: u32,
}

impl EligibleWebhook {
    pub(super) fn candidate(&self) -> Candidate {
        Candidate {
            health: self.receiver_health,
            is_proven: self.is_proven,
            in_flight: self.in_flight,
            store_id: self.target.key.store_id,
            webhook_id: self.target.key.webhook_id,
        }
    }
}

/// Whether any notification is due and its host may be called, even if there is no capacity for it.
/// Writes nothing.
pub async fn is_any_due(connection: &impl ConnectionTrait, now: Timestamp) -> Result<bool, Error> {
    rows::exist(connection, Entity::find().filter(is_due(connection, now))).await
}

/// Whether any webhook is eligible. Writes nothing.
pub async fn is_any_claimable(
    connection: &impl ConnectionTrait,
    budget: &ClaimBudget,
    now: Timestamp,
) -> Result<bool, Error> {
    let eligible = Entity::find().filter(is_eligible(connection, budget, now));
    rows::exist(connection, eligible).await
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
                receiver_health: ReceiverHealth::parse(webhook.receiver_health.as_deref()),
                is_proven: webhook.is_proven,
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
    let is_healthy = || Column::ReceiverHealth.eq(ReceiverHealth::Healthy.as_str());
    let mut has_budget = Condition::any().add(is_healthy());
    if budget.free_slow > 0 {
        let at_limit = padded(budget.stores_at_limit().map(|id| id.0));
        has_budget = has_budget.add(Column::StoreId.is_not_in(at_limit));
    }
    // That of slow webhooks is the limit of unproven ones too.
    let [of_healthy, of_slow] = [ReceiverHealth::Healthy, ReceiverHealth::Slow]
        .map(|health| i64::from(budget.capacity.per_webhook(health)));
    let is_fast = || Column::IsProven.eq(true).and(is_healthy());
    let mut limit = CaseStatement::new();
    if budget.free_grown > 0 {
        for (id, grown) in padded(&budget.grown) {
            limit = limit.case(is_fast().and(Column::Id.eq(id.0)), i64::from(*grown));
        }
    }
    let limit = limit.case(is_fast(), of_healthy).finally(of_slow);
    is_due(connection, now)
        .add(has_budget)
        .add(in_flight(connection).lt::<SimpleExpr>(limit.into()))
}

fn is_due(connection: &impl ConnectionTrait, now: Timestamp) -> Condition {
    let may_be_called = Condition::any()
        .add(Column::IsProven.eq(true))
        .add(receiver_hosts::is_free(connection, now));
    Condition::all()
        .add(Column::NextDueAt.lte(Instant::from(now)))
        .add(Column::DisabledAt.is_null())
        .add(may_be_called)
}

/// The number of notifications in flight of the webhook in the outer statement. If its receiver is
/// healthy, a lease past the in-flight window does not count: its dispatcher has died.
fn in_flight(connection: &impl ConnectionTrait) -> SimpleExpr {
    let end_of_window = lease_clock::expiry(connection, LEASE_LEFT_AFTER_WINDOW);
    let is_counted = Condition::any()
        .add(Column::ReceiverHealth.is_null())
        .add(Column::ReceiverHealth.ne("healthy"))
        .add(Expr::col(notification::Column::LeaseExpiresAt).gt(end_of_window));
    let mut count = Query::select();
    count
        .expr(Expr::cust("COUNT(*)"))
        .from(notification::Entity)
        .and_where(Expr::cust(OF_OUTER_WEBHOOK))
        .cond_where(is_leased())
        .cond_where(is_counted);
    subquery(count)
}
