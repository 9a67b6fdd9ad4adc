//! What is due of the webhooks whose turn it is, and how many places they have for it.

use std::collections::HashMap;

use domain::{fairness::Standing, id::WebhookId};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, Order,
    sea_query::{Alias, Expr, Query, SelectStatement, UnionType},
};
use uuid::Uuid;

use super::{
    is_leased, is_pending,
    queue::{Turn, is_young, subquery},
};

use crate::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        notification::{Column, Entity},
    },
};

/// What is due of a webhook.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    /// The longest due first.
    pub(super) ids: Vec<Uuid>,
    /// How many others are on their way.
    pub(super) in_flight: u32,
}

/// What is due of webhooks whose turn it is, up to a number of each; of those of whom anything is.
pub(super) async fn due_of(
    connection: &impl ConnectionTrait,
    shares: Vec<(&Turn, u32)>,
    now: Timestamp,
) -> Result<HashMap<WebhookId, Due>, Error> {
    // A limit of each needs a statement of each; together they are one. What makes up their
    // number asks for none.
    let last = shares.last().map(|(turn, _)| (*turn, 0));
    let missing = shares.len().next_power_of_two() - shares.len();
    let nothing = last.into_iter().cycle().take(missing);
    let mut parts = shares
        .into_iter()
        .chain(nothing)
        .enumerate()
        .map(|(number, (turn, most))| due_part(connection, number, turn, most, now));
    let Some(mut all) = parts.next() else {
        return Ok(HashMap::new());
    };
    all.unions(parts.map(|part| (UnionType::All, part)));
    let rows = connection.query_all(&all).await?;
    let mut due: HashMap<_, Due> = HashMap::new();
    for row in rows {
        let of = due.entry(WebhookId(row.try_get_by_index(1)?)).or_default();
        of.ids.push(row.try_get_by_index(0)?);
        let in_flight: i64 = row.try_get_by_index(2)?;
        of.in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
    }
    Ok(due)
}

fn due_part(
    connection: &impl ConnectionTrait,
    number: usize,
    turn: &Turn,
    most: u32,
    now: Timestamp,
) -> SelectStatement {
    let of_it = || {
        let (store_id, webhook_id) = turn.owner;
        let mut select = Query::select();
        select
            .from(Entity)
            .and_where(Column::StoreId.eq(store_id.0))
            .and_where(Column::WebhookId.eq(webhook_id.0));
        select
    };
    let mut longest_due = of_it();
    longest_due
        .columns([Column::Id, Column::WebhookId])
        .cond_where(is_pending())
        .and_where(Column::DueAt.lte(Instant::from(now)))
        .order_by(Column::DueAt, Order::Asc)
        .limit(most.into());
    let mut in_flight = of_it();
    // One text, whatever its standing.
    let is_any = Expr::value(turn.standing != Standing::Answering);
    in_flight
        .expr(Expr::cust("COUNT(*)"))
        .cond_where(is_leased())
        .cond_where(Condition::any().add(is_any).add(is_young(connection)));
    let mut part = Query::select();
    part.columns([Column::Id, Column::WebhookId])
        .expr(subquery(in_flight))
        .from_subquery(longest_due, Alias::new(format!("due_{number}")));
    part
}
