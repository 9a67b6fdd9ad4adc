//! Outcomes: what becomes of a notification after an attempt.

use std::collections::HashMap;

use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, QueryFilter, QuerySelect,
    sea_query::{Expr, ExprTrait as _, OnConflict},
};
use uuid::Uuid;

use super::{DELIVERED, GIVEN_UP, LEASED, PENDING};
use crate::{
    domain::{
        id::{NotificationId, StoreId, WebhookId},
        notification::{Next, Outcome, after},
    },
    storage::{
        ConnectionTrait, Error,
        entity::{
            attempt,
            instant::Instant,
            notification::{Column, Entity},
        },
        webhooks,
    },
};

/// How an attempt under a lease ended.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) id: NotificationId,
    pub(crate) lease_token: Uuid,
    pub(crate) outcome: Outcome,
    /// The HTTP status, if there was an answer.
    pub(crate) status: Option<u16>,
    /// The failure's name; none if it was delivered.
    pub(crate) failure: Option<&'static str>,
    /// Microseconds.
    pub(crate) duration: i64,
    pub(crate) answer: String,
    /// A random number, for the delay of the next attempt.
    pub(crate) jitter: u64,
}

/// An attempt that counted.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) store_id: StoreId,
    pub(crate) number: i64,
    pub(crate) report: Report,
}

/// Writes what becomes of notifications after their attempts, and gives the attempts that
/// counted. A report under a lease that is over changes nothing.
pub(crate) async fn record(
    transaction: &impl ConnectionTrait,
    reports: &[Report],
    now: Timestamp,
) -> Result<Vec<Attempt>, Error> {
    let mut held: HashMap<_, _> = Entity::find()
        .filter(Column::Id.is_in(reports.iter().map(|report| report.id.0)))
        .filter(Column::State.eq(LEASED))
        .lock_exclusive()
        .all(transaction)
        .await?
        .into_iter()
        .map(|row| (row.id, row))
        .collect();
    let mut attempts = Vec::with_capacity(reports.len());
    let (mut delivered, mut given_up, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for report in reports {
        // One lease has one outcome: what comes after it is stale.
        let row = held
            .remove(&report.id.0)
            .filter(|row| row.lease_token == Some(report.lease_token));
        let Some(row) = row else {
            tracing::info!(notification.id = %report.id, "an outcome came after its lease");
            continue;
        };
        let number = row.attempts + 1;
        let counted = u32::try_from(number).unwrap_or(u32::MAX);
        match after(&report.outcome, counted, report.jitter, now) {
            Next::Delivered => delivered.push(row.id),
            Next::RetryAt(due_at) => retry(transaction, row.id, due_at).await?,
            Next::GivenUp => given_up.push(row.id),
            Next::Gone => {
                given_up.push(row.id);
                gone.push((StoreId(row.store_id), WebhookId(row.webhook_id)));
            }
        }
        attempts.push(Attempt {
            store_id: StoreId(row.store_id),
            number,
            report: report.clone(),
        });
    }
    finish(transaction, delivered, DELIVERED, now).await?;
    finish(transaction, given_up, GIVEN_UP, now).await?;
    if !gone.is_empty() {
        webhooks::disable(transaction, gone, now).await?;
    }
    Ok(attempts)
}

/// Keeps the attempts, for people to look at.
pub(crate) async fn insert_attempts(
    transaction: &impl ConnectionTrait,
    attempts: &[Attempt],
    now: Timestamp,
) -> Result<(), Error> {
    let rows = attempts.iter().map(|attempt| attempt::ActiveModel {
        store_id: Set(attempt.store_id.0),
        notification_id: Set(attempt.report.id.0),
        number: Set(attempt.number),
        failure: Set(attempt.report.failure.map(str::to_owned)),
        status: Set(attempt.report.status.map(i64::from)),
        duration: Set(attempt.report.duration),
        answer: Set(attempt.report.answer.clone()),
        recorded_at: Set(now.into()),
    });
    attempt::Entity::insert_many(rows)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

async fn retry(
    transaction: &impl ConnectionTrait,
    id: Uuid,
    due_at: Timestamp,
) -> Result<(), Error> {
    Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::DueAt, Expr::value(Instant::from(due_at)))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(Column::Id.eq(id))
        .exec(transaction)
        .await?;
    Ok(())
}

async fn finish(
    transaction: &impl ConnectionTrait,
    ids: Vec<Uuid>,
    state: &str,
    now: Timestamp,
) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    Entity::update_many()
        .col_expr(Column::State, Expr::value(state))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(Column::Id.is_in(ids))
        .exec(transaction)
        .await?;
    Ok(())
}
