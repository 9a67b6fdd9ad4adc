//! Reads the due notifications of eligible webhooks, with a limit for each.

use std::collections::HashMap;

use domain::{id::WebhookId, scheduling::ReceiverHealth};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, Order,
    sea_query::{Alias, Expr, Query, SelectStatement, UnionType},
};
use uuid::Uuid;

use super::{
    eligibility::{EligibleWebhook, is_within_in_flight_window},
    queue::subquery,
    state::{is_leased, is_pending, of_webhook},
};
use crate::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        notification::{Column, Entity},
    },
};

/// The due notifications of one webhook.
#[derive(Clone, Debug, Default)]
pub(super) struct DueBatch {
    /// Earliest due first.
    pub(super) ids: Vec<Uuid>,
    /// How many other notifications of the webhook are in flight.
    pub(super) in_flight: u32,
}

/// The due notifications of eligible webhooks, up to the limit of each. The map omits webhooks
/// without due notifications.
pub(super) async fn due_batches(
    connection: &impl ConnectionTrait,
    limits: Vec<(&EligibleWebhook, u32)>,
    now: Timestamp,
) -> Result<HashMap<WebhookId, DueBatch>, Error> {
    // A limit per webhook requires a select per webhook; a union combines them. Selects with limit
    // 0 pad it to a power of two, so that few different statement texts occur.
    let last = limits.last().map(|(webhook, _)| (*webhook, 0));
    let missing = limits.len().next_power_of_two() - limits.len();
    let padding = last.into_iter().cycle().take(missing);
    let mut selects = limits
        .into_iter()
        .chain(padding)
        .enumerate()
        .map(|(index, (webhook, limit))| select_due(connection, index, webhook, limit, now));
    let Some(mut union) = selects.next() else {
        return Ok(HashMap::new());
    };
    union.unions(selects.map(|select| (UnionType::All, select)));
    let rows = connection.query_all(&union).await?;
    let mut batches: HashMap<_, DueBatch> = HashMap::new();
    for row in rows {
        let webhook_id = WebhookId(row.try_get_by_index(1)?);
        let batch = batches.entry(webhook_id).or_default();
        batch.ids.push(row.try_get_by_index(0)?);
        let in_flight: i64 = row.try_get_by_index(2)?;
        batch.in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
    }
    Ok(batches)
}

fn select_due(
    connection: &impl ConnectionTrait,
    index: usize,
    webhook: &EligibleWebhook,
    limit: u32,
    now: Timestamp,
) -> SelectStatement {
    let notifications_of_webhook = || {
        let mut select = Query::select();
        select
            .from(Entity)
            .cond_where(of_webhook(webhook.target.key()));
        select
    };
    let mut earliest_due = notifications_of_webhook();
    earliest_due
        .columns([Column::Id, Column::WebhookId])
        .cond_where(is_pending())
        .and_where(Column::DueAt.lte(Instant::from(now)))
        .order_by(Column::DueAt, Order::Asc)
        .limit(limit.into());
    let mut in_flight = notifications_of_webhook();
    // A parameter, so that the statement's text is the same for every receiver health.
    let counts_all = Expr::value(webhook.receiver_health != ReceiverHealth::Healthy);
    in_flight
        .expr(Expr::cust("COUNT(*)"))
        .cond_where(is_leased())
        .cond_where(
            Condition::any()
                .add(counts_all)
                .add(is_within_in_flight_window(connection)),
        );
    let mut select = Query::select();
    select
        .columns([Column::Id, Column::WebhookId])
        .expr(subquery(in_flight))
        .from_subquery(earliest_due, Alias::new(format!("due_{index}")));
    select
}
