//! Claims due notifications under a lease, webhook by webhook.

use std::{collections::HashMap, time::Duration};

use domain::{
    id::{DeliveryId, NotificationId},
    scheduling::{ClaimBudget, ReceiverHealth},
};

use super::{
    LEASED, PENDING,
    due_batch::{DueBatch, due_batches},
    eligibility::{EligibleWebhook, eligible_webhooks, max_webhooks},
    is_in,
    leases::Lease,
    queue,
};
use crate::prelude::*;
use crate::{
    entity::notification::{Column, Entity, Model},
    lease_clock,
    webhooks::{Target, receiver_hosts},
};

/// A notification under a lease, claimed or pre-leased, with its target.
#[derive(Clone, Debug)]
pub struct ClaimedNotification {
    pub lease: Lease,
    pub event: String,
    pub delivery_id: DeliveryId,
    /// How many attempts have ended.
    pub attempts: u32,
    pub receiver_health: ReceiverHealth,
    /// Names the span of the call that caused the event.
    pub traceparent: Option<String>,
    pub target: Target,
}

/// The result of a claim.
#[derive(Clone, Debug, Default)]
pub struct ClaimedBatch {
    pub claimed: Vec<ClaimedNotification>,
    /// Whether no more due notifications can be claimed now: any others exceed a limit of their webhook,
    /// of slow receivers or of their store. Says nothing if none was claimed.
    pub is_complete: bool,
}

/// Claims due notifications, webhook by webhook, within the budget.
pub async fn claim(
    transaction: &impl ConnectionTrait,
    budget: &ClaimBudget,
    lease: Duration,
    now: Timestamp,
) -> Result<ClaimedBatch, Error> {
    let webhooks = eligible_webhooks(transaction, budget, now).await?;
    claim_from(transaction, budget, webhooks, lease, now).await
}

/// Claims due notifications of eligible webhooks, which are locked.
pub(super) async fn claim_from(
    transaction: &impl ConnectionTrait,
    budget: &ClaimBudget,
    webhooks: Vec<EligibleWebhook>,
    lease: Duration,
    now: Timestamp,
) -> Result<ClaimedBatch, Error> {
    let is_below = |count: usize, limit| u32::try_from(count).is_ok_and(|count| count < limit);
    let includes_all_webhooks = is_below(webhooks.len(), max_webhooks(budget));
    let candidates: Vec<_> = webhooks.iter().map(EligibleWebhook::candidate).collect();
    let shares: Vec<_> = webhooks
        .iter()
        .zip(budget.share(&candidates))
        .filter(|(_, share)| *share > 0)
        .collect();
    if shares.is_empty() {
        return Ok(ClaimedBatch::default());
    }
    // Reads one more than each share, to find out whether more are due.
    let limits = shares.iter().map(|(webhook, share)| (*webhook, share + 1));
    let mut batches = due_batches(transaction, limits.collect(), now).await?;
    let unproven = shares
        .iter()
        .filter(|(webhook, _)| {
            !webhook.is_proven && batches.contains_key(&webhook.target.key.webhook_id)
        })
        .map(|(webhook, _)| (webhook.target.key.store_id, webhook.target.host.as_str()));
    let mut hosts = receiver_hosts::occupy(transaction, unproven.collect(), lease, now).await?;
    let (mut more_due, mut none_due) = (Vec::new(), Vec::new());
    let mut ids = Vec::new();
    for (webhook, share) in &shares {
        // `in_flight` is counted again, now that the webhook is locked.
        let DueBatch {
            ids: mut due,
            in_flight,
        } = batches
            .remove(&webhook.target.key.webhook_id)
            .unwrap_or_default();
        // The first unproven webhook of its store at a host takes the host. The others keep their
        // positions in the queue.
        if !due.is_empty() && !webhook.is_proven {
            let host = (webhook.target.key.store_id, webhook.target.host.clone());
            if !hosts.remove(&host) {
                continue;
            }
        }
        let limit = budget.limit(&webhook.candidate());
        let share = std::cmp::min(limit.saturating_sub(in_flight), *share);
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        if due.len() > share {
            more_due.push(webhook.target.key);
        } else {
            none_due.push(webhook.target.key);
        }
        due.truncate(share);
        ids.append(&mut due);
    }

    let rows = lease_rows(transaction, ids, lease).await?;
    queue::reschedule(transaction, &more_due, &none_due, now).await?;
    let claimed = with_targets(rows, webhooks);
    let is_complete = includes_all_webhooks && is_below(claimed.len(), budget.free);
    Ok(ClaimedBatch {
        claimed,
        is_complete,
    })
}

async fn lease_rows(
    transaction: &impl ConnectionTrait,
    ids: Vec<Uuid>,
    lease: Duration,
) -> Result<Vec<Model>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::update_many()
        .col_expr(Column::State, Expr::value(LEASED))
        .col_expr(Column::LeaseToken, Expr::value(Uuid::now_v7()))
        .col_expr(
            Column::LeaseExpiresAt,
            lease_clock::expiry(transaction, lease),
        )
        .filter(Column::Id.is_in(padded(ids)))
        .filter(is_in(PENDING))
        .exec_with_returning(transaction)
        .await?;
    Ok(rows)
}

fn with_targets(rows: Vec<Model>, webhooks: Vec<EligibleWebhook>) -> Vec<ClaimedNotification> {
    let webhooks: HashMap<_, _> = webhooks
        .into_iter()
        .map(|webhook| (webhook.target.key.webhook_id.0, webhook))
        .collect();
    rows.into_iter()
        .filter_map(|row| {
            let webhook = webhooks.get(&row.webhook_id)?;
            Some(ClaimedNotification {
                lease: Lease {
                    id: NotificationId(row.id),
                    token: row.lease_token?,
                },
                event: row.event,
                delivery_id: DeliveryId(row.delivery_id),
                attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
                receiver_health: webhook.receiver_health,
                traceparent: row.traceparent,
                target: webhook.target.clone(),
            })
        })
        .collect()
}
