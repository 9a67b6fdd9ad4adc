//! Outcomes: what becomes of notifications after their attempts. A batch costs as many
//! statements as one does.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use domain::{
    event::{Object, WEBHOOK_DISABLED},
    id::{EventId, NotificationId, StoreId, WebhookId},
    notification::{Outcome, is_failing_for_too_long},
    webhook::DisabledReason,
};
use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{CaseStatement, Expr, ExprTrait as _, OnConflict, SimpleExpr},
};
use uuid::Uuid;

use super::{
    DELIVERED, DROPPED, GIVEN_UP, PENDING, is_dropped, is_leased, leases::under_leases,
    leftover::DROPPED_AT_ONCE, owed, queue::Owner, standing, verdicts::Verdicts,
};

use crate::{
    ConnectionTrait, Error,
    entity::{
        attempt,
        instant::Instant,
        notification::{Column, Entity, Model},
    },
    events,
    padding::padded,
    webhooks,
};

/// How an attempt under a lease ended.
#[derive(Clone, Debug)]
pub struct Report {
    pub id: NotificationId,
    pub lease_token: Uuid,
    pub outcome: Outcome,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    pub duration: Duration,
    pub answer: String,
    /// A random number, for the delay of the next attempt.
    pub jitter: u64,
}

/// An attempt that counted.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub store_id: StoreId,
    pub number: i64,
    /// When its outcome was recorded.
    pub recorded_at: Timestamp,
    pub report: Report,
}

/// What a batch of reports brought about.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub attempts: Vec<Attempt>,
    /// Webhooks disabled because their receivers are gone.
    pub gone: Vec<Owner>,
    /// Webhooks disabled because their receivers have only failed for too long.
    pub failing: Vec<Owner>,
}

/// Writes what becomes of notifications after their attempts. A report under a lease that is
/// over changes nothing.
pub async fn record(
    transaction: &impl ConnectionTrait,
    reports: &[Report],
    disable_after: SignedDuration,
    now: Timestamp,
) -> Result<Recorded, Error> {
    let reports = one_of_each(transaction, reports).await?;
    let mut rows = deliver_or_lock(transaction, &reports, is_leased, now).await?;
    // Few: their webhooks were disabled while they were on their way. They are locked after those.
    let untold = missing(&reports, &rows);
    let dropped = find(transaction, &untold, is_dropped()).await?;
    let owners: BTreeSet<_> = dropped.iter().map(owner).collect();
    rows.extend(keyed(dropped));

    let mut verdicts = Verdicts::of(&reports, &rows, now);
    let since = now.saturating_sub(disable_after).unwrap_or(Timestamp::MIN);
    let to_disable = (&verdicts.gone, since);
    let locked = standing::lock(transaction, &verdicts.endings, &owners, to_disable).await?;
    if !owners.is_empty() {
        rows.retain(|_, row| row.state != DROPPED);
        rows.extend(deliver_or_lock(transaction, &untold, is_dropped, now).await?);
        verdicts = Verdicts::of(&reports, &rows, now);
    }
    for report in missing(&reports, &rows) {
        say_late(report);
    }

    let failing = standing::note(transaction, &verdicts.endings, &locked, now).await?;
    verdicts.keep_owed(&failing.enabled);
    retry(transaction, &verdicts.retried).await?;
    end(transaction, verdicts.given_up, GIVEN_UP, now).await?;
    end(transaction, verdicts.dropped, DROPPED, now).await?;
    let mut recorded = Recorded {
        attempts: verdicts.attempts,
        ..Recorded::default()
    };
    if !locked.may_be_disabled {
        return Ok(recorded);
    }
    let gone = verdicts.gone;
    let failing = failing
        .since
        .into_iter()
        .filter(|(owner, since)| {
            let since = Timestamp::try_from(*since).unwrap_or(now);
            !gone.contains(owner) && is_failing_for_too_long(since, disable_after, now)
        })
        .map(|(owner, _)| owner)
        .collect::<BTreeSet<_>>();
    recorded.gone = disable(transaction, gone, DisabledReason::Gone, now).await?;
    recorded.failing = disable(transaction, failing, DisabledReason::Failing, now).await?;
    Ok(recorded)
}

/// One report of each notification: one lease has one outcome, what comes after it is stale. Of a
/// notification that is told of under several leases, as hardly ever happens, all but one are
/// over; which, only the row knows.
async fn one_of_each<'a>(
    connection: &impl ConnectionTrait,
    reports: &'a [Report],
) -> Result<Vec<&'a Report>, Error> {
    let mut leases = HashSet::new();
    let mut reports: Vec<_> = reports
        .iter()
        .filter(|report| leases.insert((report.id, report.lease_token)))
        .collect();
    let mut ids = HashSet::new();
    let several: HashSet<_> = reports
        .iter()
        .map(|report| report.id)
        .filter(|id| !ids.insert(*id))
        .collect();
    if several.is_empty() {
        return Ok(reports);
    }
    let mut of_several = reports.clone();
    of_several.retain(|report| several.contains(&report.id));
    let either = Condition::any().add(is_leased()).add(is_dropped());
    let rows = find(connection, &of_several, either).await?;
    let current: HashSet<_> = rows.iter().map(|row| (row.id, row.lease_token)).collect();
    reports.retain(|report| {
        let is_over = several.contains(&report.id)
            && !current.contains(&(report.id.0, Some(report.lease_token)));
        if is_over {
            say_late(report);
        }
        !is_over
    });
    Ok(reports)
}

fn say_late(report: &Report) {
    tracing::info!(notification.id = %report.id, "an outcome came after its lease");
}

/// Of notifications in a state, under the leases told of: those delivered are ended, the others
/// locked.
async fn deliver_or_lock(
    transaction: &impl ConnectionTrait,
    reports: &[&Report],
    state: fn() -> SimpleExpr,
    now: Timestamp,
) -> Result<HashMap<Uuid, Model>, Error> {
    let (delivered, failed): (Vec<_>, Vec<_>) = reports
        .iter()
        .copied()
        .partition(|report| report.outcome == Outcome::Delivered);
    let delivered = deliver(transaction, &delivered, state(), now).await?;
    let failed = lock(transaction, &failed, state()).await?;
    Ok(keyed(delivered).chain(keyed(failed)).collect())
}

fn missing<'a>(reports: &[&'a Report], rows: &HashMap<Uuid, Model>) -> Vec<&'a Report> {
    let is_missing = |report: &&Report| !rows.contains_key(&report.id.0);
    reports.iter().copied().filter(is_missing).collect()
}

fn owner(row: &Model) -> Owner {
    (StoreId(row.store_id), WebhookId(row.webhook_id))
}

fn keyed(rows: Vec<Model>) -> impl Iterator<Item = (Uuid, Model)> {
    rows.into_iter().map(|row| (row.id, row))
}

/// Ends what was delivered, of those in a state, and gives it.
async fn deliver(
    transaction: &impl ConnectionTrait,
    reports: &[&Report],
    state: SimpleExpr,
    now: Timestamp,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::update_many()
        .col_expr(Column::State, Expr::value(DELIVERED))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(leases_of(reports).add(state))
        .exec_with_returning(transaction)
        .await?;
    Ok(rows)
}

async fn lock(
    transaction: &impl ConnectionTrait,
    reports: &[&Report],
    state: SimpleExpr,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::find()
        .filter(leases_of(reports).add(state))
        .order_by_asc(Column::Id)
        .lock_exclusive()
        .all(transaction)
        .await?;
    Ok(rows)
}

async fn find(
    connection: &impl ConnectionTrait,
    reports: &[&Report],
    states: impl Into<Condition>,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::find()
        .filter(leases_of(reports).add(states.into()))
        .all(connection)
        .await?;
    Ok(rows)
}

fn leases_of(reports: &[&Report]) -> Condition {
    under_leases(reports.iter().map(|report| (report.id, report.lease_token)))
}

async fn retry(
    transaction: &impl ConnectionTrait,
    retried: &BTreeMap<Uuid, (Owner, Timestamp)>,
) -> Result<(), Error> {
    if retried.is_empty() {
        return Ok(());
    }
    let due_at = retried
        .iter()
        .fold(CaseStatement::new(), |due_at, (id, (_, instant))| {
            due_at.case(Column::Id.eq(*id), Expr::value(Instant::from(*instant)))
        })
        .finally(Expr::col(Column::DueAt));
    Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::DueAt, due_at.into())
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(Column::Id.is_in(padded(retried.keys().copied())))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Ends what was told in vain.
async fn end(
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
        .filter(Column::Id.is_in(padded(ids)))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Disables those webhooks that are enabled, and gives them; what is owed to them is dropped, or
/// the beginning of it: the outcomes of others are recorded by this transaction too, which must
/// end in its time.
async fn disable(
    transaction: &impl ConnectionTrait,
    webhooks: BTreeSet<Owner>,
    reason: DisabledReason,
    now: Timestamp,
) -> Result<Vec<Owner>, Error> {
    if webhooks.is_empty() {
        return Ok(Vec::new());
    }
    let disabled = webhooks::disable(transaction, webhooks, reason, now).await?;
    let happened = disabled.iter().map(|(store_id, id)| {
        let object = Object::Webhook(*id);
        (*store_id, EventId::new(), WEBHOOK_DISABLED, object)
    });
    events::insert(transaction, happened, now).await?;
    let count = u64::try_from(disabled.len()).unwrap_or(u64::MAX);
    let most = DROPPED_AT_ONCE / std::cmp::max(count, 1);
    for (store_id, id) in &disabled {
        owed::drop_owed(transaction, *store_id, *id, Some(most), now).await?;
    }
    Ok(disabled)
}

/// Keeps the attempts, for people to look at.
pub async fn insert_attempts(
    transaction: &impl ConnectionTrait,
    attempts: &[Attempt],
) -> Result<(), Error> {
    // What is there twice is written once.
    let rows = padded(attempts)
        .into_iter()
        .map(|attempt| attempt::ActiveModel {
            store_id: Set(attempt.store_id.0),
            notification_id: Set(attempt.report.id.0),
            number: Set(attempt.number),
            failure: Set(attempt
                .report
                .outcome
                .failure()
                .map(|failure| failure.as_str().to_owned())),
            status: Set(attempt.report.status.map(i64::from)),
            duration: Set(i64::try_from(attempt.report.duration.as_micros()).unwrap_or(i64::MAX)),
            answer: Set(attempt.report.answer.clone()),
            recorded_at: Set(attempt.recorded_at.into()),
        });
    attempt::Entity::insert_many(rows)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}
