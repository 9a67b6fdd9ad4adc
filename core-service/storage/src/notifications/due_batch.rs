//! Reads the due notifications of eligible webhooks, with a limit for each.

use std::collections::HashMap;

use domain::{id::WebhookId, scheduling::ReceiverHealth};
use sea_orm::Value;

use super::eligibility::{EligibleWebhook, LEASE_LEFT_AFTER_WINDOW};
use crate::prelude::*;
use crate::{entity::Instant, lease_clock};

/// The due notifications of one webhook.
#[derive(Clone, Debug, Default)]
pub(super) struct DueBatch {
    /// Earliest due first.
    pub(super) ids: Vec<Uuid>,
    /// How many other notifications of the webhook are in flight.
    pub(super) in_flight: u32,
}

/// The due notifications of eligible webhooks, up to the limit of each. `limits` must not be empty. The map
/// omits webhooks without due notifications.
pub(super) async fn due_batches(
    connection: &impl ConnectionTrait,
    limits: Vec<(&EligibleWebhook, u32)>,
    now: Timestamp,
) -> Result<HashMap<WebhookId, DueBatch>, Error> {
    // A limit per webhook requires a select per webhook; a union combines them. Selects with limit
    // 0 pad it to a power of two, so that few different statement texts occur; so does the parameter
    // that says whether all leases count. States are literals, for which partial indexes can be used.
    let last = limits.last().map(|(webhook, _)| (*webhook, 0));
    let missing = limits.len().next_power_of_two() - limits.len();
    let padding = last.into_iter().cycle().take(missing);
    let (end_of_window, window) =
        lease_clock::expiry_sql(connection, LEASE_LEFT_AFTER_WINDOW, "$2");
    let mut values = vec![Instant::from(now).into(), window];
    let mut selects = Vec::new();
    for (webhook, limit) in limits.into_iter().chain(padding) {
        let key = webhook.target.key;
        let counts_all = webhook.receiver_health != ReceiverHealth::Healthy;
        let parameters: [Value; 4] = [
            key.store_id.0.into(),
            key.webhook_id.0.into(),
            counts_all.into(),
            i64::from(limit).into(),
        ];
        let number = values.len() + 1;
        let of_webhook = format!("store_id = ${number} AND webhook_id = ${}", number + 1);
        selects.push(format!(
            "SELECT id, webhook_id, (
                SELECT COUNT(*) FROM notifications WHERE {of_webhook} AND state = 'leased'
                    AND (${} OR lease_expires_at > {end_of_window})
            ) FROM (
                SELECT id, webhook_id FROM notifications
                WHERE {of_webhook} AND state = 'pending' AND due_at <= $1
                ORDER BY due_at LIMIT ${}
            ) AS due_{number}",
            number + 2,
            number + 3
        ));
        values.extend(parameters);
    }
    let mut batches: HashMap<_, DueBatch> = HashMap::new();
    for row in rows::query(connection, &selects.join(" UNION ALL "), values).await? {
        let webhook_id = WebhookId(row.try_get_by_index(1)?);
        let batch = batches.entry(webhook_id).or_default();
        batch.ids.push(row.try_get_by_index(0)?);
        let in_flight: i64 = row.try_get_by_index(2)?;
        batch.in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
    }
    Ok(batches)
}
