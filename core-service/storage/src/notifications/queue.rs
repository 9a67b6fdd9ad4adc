//! Whose turn it is. Claims go by webhook, so that a receiver with a long backlog holds up no
//! other: the column `next_due_at` of a webhook is its place in the queue.
//!
//! While anything of a webhook is pending, its place is there and not later than that is due, or
//! than its last turn. Whoever makes something pending brings the place forward in the same
//! transaction ([`hold_places`] or [`wake`]); only [`move_on`] puts it back, and not while a
//! transaction may be adding something it can't see.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use domain::{
    fairness::{LEASE, ON_ITS_WAY, Room, Standing},
    id::{StoreId, WebhookId},
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, DbBackend, EntityTrait, FromQueryResult as _, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait as _,
    sea_query::{
        CaseStatement, Expr, ExprTrait as _, LockBehavior, LockType, Query, SelectStatement,
        SimpleExpr,
    },
};
use uuid::Uuid;

use super::{is_leased, is_pending, standing::standing};

use crate::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        notification,
        webhook::{Column, Entity, Model},
    },
    lease_clock,
    webhooks::{self, Target, any_of},
};

/// How much is left of the lease of what was taken so long ago that its receiver, one that
/// answers, would have done so.
pub(super) const UNANSWERED: Duration = LEASE.saturating_sub(ON_ITS_WAY);

/// How many webhooks have a turn in one claim.
const MOST_TURNS: u32 = 64;

/// How many webhooks have a turn in a claim for which there is so much room.
pub(super) fn most_turns(room: &Room) -> u32 {
    std::cmp::min(room.free, MOST_TURNS)
}

/// A webhook, named with its store.
pub(super) type Owner = (StoreId, WebhookId);

/// Whether anything is due, whether or not there is a place for it: a look that writes nothing.
pub async fn is_any_due(connection: &impl ConnectionTrait, now: Timestamp) -> Result<bool, Error> {
    let found: Option<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(due(now))
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// A webhook whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) owner: Owner,
    pub(super) standing: Standing,
    pub(super) target: Target,
    /// How many of its notifications were on their way before it was locked.
    pub(super) in_flight: u32,
}

/// Whether it is the turn of any webhook that has a place free: a look that writes nothing.
pub async fn is_any_turn(
    connection: &impl ConnectionTrait,
    room: &Room,
    now: Timestamp,
) -> Result<bool, Error> {
    let found: Option<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(has_turn(connection, room, now))
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// The webhooks whose turn it is, first come first served, and that seem to have a free place
/// each: another may have taken it just before the lock was ours ([`due_of`](super::due::due_of) counts anew). Nobody
/// else takes anything of theirs until the transaction ends: on `PostgreSQL` concurrent
/// claims step past each other's webhooks, on `SQLite` they follow one another.
pub(super) async fn turns(
    transaction: &impl ConnectionTrait,
    room: &Room,
    now: Timestamp,
) -> Result<Vec<Turn>, Error> {
    let turns = Entity::find()
        .expr_as(in_flight(transaction), "in_flight")
        .filter(has_turn(transaction, room, now))
        .order_by_asc(Column::NextDueAt)
        .limit(u64::from(most_turns(room)))
        // Not so strong a lock that what comes to be owed meanwhile would have to wait for it.
        .lock_with_behavior(LockType::NoKeyUpdate, LockBehavior::SkipLocked)
        .into_query();
    let rows = transaction.query_all(&turns).await?;
    rows.iter()
        .map(|row| {
            let webhook = Model::from_query_result(row, "")?;
            let in_flight: i64 = row.try_get("", "in_flight")?;
            Ok(Turn {
                owner: (StoreId(webhook.store_id), WebhookId(webhook.id)),
                standing: standing(webhook.was_slow),
                in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
                target: webhook.try_into()?,
            })
        })
        .collect()
}

/// Ends turns: those of whom more is due go to the end of the queue, the others to where their
/// next notification is due.
pub(super) async fn move_on(
    transaction: &impl ConnectionTrait,
    more_due: &[Owner],
    exhausted: &[Owner],
    now: Timestamp,
) -> Result<(), Error> {
    if !more_due.is_empty() {
        Entity::update_many()
            .col_expr(Column::NextDueAt, Expr::value(Instant::from(now)))
            .filter(any_of(more_due.iter().copied()))
            .exec(transaction)
            .await?;
    }
    if exhausted.is_empty() {
        return Ok(());
    }
    let settled = if transaction.get_database_backend() == DbBackend::Sqlite {
        exhausted.to_vec()
    } else {
        // Whoever is adding something holds the place (`hold_places`); then it stays as it is.
        let rows: Vec<(Uuid, Uuid)> = Entity::find()
            .select_only()
            .columns([Column::StoreId, Column::Id])
            .filter(any_of(exhausted.iter().copied()))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .into_tuple()
            .all(transaction)
            .await?;
        rows.into_iter()
            .map(|(store_id, id)| (StoreId(store_id), WebhookId(id)))
            .collect()
    };
    if settled.is_empty() {
        return Ok(());
    }
    Entity::update_many()
        .col_expr(Column::NextDueAt, subquery(earliest_pending()))
        .filter(any_of(settled))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Holds the places of webhooks for which something is about to be pending that is due now, and
/// brings them forward. Those of them that are there and enabled, and stay so until the
/// transaction ends. Such transactions don't wait for each other but while a place is moved.
pub(super) async fn hold_places(
    transaction: &impl ConnectionTrait,
    owners: &[Owner],
    now: Timestamp,
) -> Result<HashSet<WebhookId>, Error> {
    let rows: Vec<(Uuid, Uuid, Option<Instant>)> = Entity::find()
        .select_only()
        .columns([Column::StoreId, Column::Id, Column::NextDueAt])
        .filter(any_of(owners.iter().copied()))
        .filter(Column::DisabledAt.is_null())
        .order_by_asc(Column::StoreId)
        .order_by_asc(Column::Id)
        .lock(LockType::KeyShare)
        .into_tuple()
        .all(transaction)
        .await?;
    let now = Instant::from(now);
    let later: Vec<_> = rows
        .iter()
        .filter(|(_, _, due)| due.is_none_or(|due| due > now))
        .map(|(store_id, id, _)| (StoreId(*store_id), WebhookId(*id)))
        .collect();
    if !later.is_empty() {
        lock_several(transaction, &later).await?;
        Entity::update_many()
            .col_expr(Column::NextDueAt, Expr::value(now))
            .filter(any_of(later))
            .filter(not_before(Expr::value(now)))
            .exec(transaction)
            .await?;
    }
    Ok(rows.into_iter().map(|(_, id, _)| WebhookId(id)).collect())
}

/// Brings webhooks' places forward to when something of theirs, pending again, is due. Those of
/// them that are there and enabled, and stay so until the transaction ends.
pub async fn wake(
    transaction: &impl ConnectionTrait,
    due: &BTreeMap<Owner, Timestamp>,
) -> Result<HashSet<WebhookId>, Error> {
    if due.is_empty() {
        return Ok(HashSet::new());
    }
    lock_several(transaction, &due.keys().copied().collect::<Vec<_>>()).await?;
    // Without a condition on the place: the row is locked, whatever it says.
    let rows = Entity::update_many()
        .col_expr(Column::NextDueAt, brought_forward(due))
        .filter(any_of(due.keys().copied()))
        .filter(Column::DisabledAt.is_null())
        .exec_with_returning(transaction)
        .await?;
    Ok(rows.into_iter().map(|row| WebhookId(row.id)).collect())
}

/// Locks webhooks that an update would lock in an order of its own; one has none.
async fn lock_several(transaction: &impl ConnectionTrait, owners: &[Owner]) -> Result<(), Error> {
    if owners.len() > 1 {
        let which = any_of(owners.iter().copied());
        webhooks::lock(transaction, which, LockType::NoKeyUpdate).await?;
    }
    Ok(())
}

/// The place, or an instant of each webhook's own if that is earlier.
pub(super) fn brought_forward(due: &BTreeMap<Owner, Timestamp>) -> SimpleExpr {
    let own = due
        .iter()
        .fold(CaseStatement::new(), |own, ((_, id), due)| {
            own.case(Column::Id.eq(id.0), Expr::value(Instant::from(*due)))
        })
        .finally(Expr::col(Column::NextDueAt));
    let own: SimpleExpr = own.into();
    let place = CaseStatement::new()
        .case(not_before(own.clone()), own)
        .finally(Expr::col(Column::NextDueAt));
    place.into()
}

fn has_turn(connection: &impl ConnectionTrait, room: &Room, now: Timestamp) -> Condition {
    let answering = Column::WasSlow.eq(false);
    let mut standings = Condition::any().add(answering.clone());
    if room.free_for_new > 0 {
        standings = standings.add(Column::WasSlow.is_null());
    }
    if room.free_for_slow > 0 {
        standings = standings.add(Column::WasSlow.eq(true));
    }
    let of_one = |standing| i64::from(room.places.of_one(standing));
    let places = CaseStatement::new()
        .case(answering, of_one(Standing::Answering))
        .finally(of_one(Standing::New));
    due(now)
        .add(standings)
        .add(in_flight(connection).lt::<SimpleExpr>(places.into()))
}

fn due(now: Timestamp) -> Condition {
    Condition::all()
        .add(Column::NextDueAt.lte(Instant::from(now)))
        .add(Column::DisabledAt.is_null())
}

/// Whether a place is not there, or later than an instant.
fn not_before(instant: SimpleExpr) -> Condition {
    Condition::any()
        .add(Column::NextDueAt.is_null())
        .add(Expr::col(Column::NextDueAt).gt(instant))
}

/// How many notifications of the webhook of the outer statement are on their way: under a lease
/// and, where their receiver answers, not for so long that the dispatcher must have died.
fn in_flight(connection: &impl ConnectionTrait) -> SimpleExpr {
    let may_be_held = Condition::any()
        .add(Column::WasSlow.is_null())
        .add(Column::WasSlow.eq(true))
        .add(is_young(connection));
    let mut count = of_outer_webhook();
    count
        .expr(Expr::cust("COUNT(*)"))
        .cond_where(is_leased())
        .cond_where(may_be_held);
    subquery(count)
}

/// Whether what is under a lease may be on its way to a receiver that answers.
pub(super) fn is_young(connection: &impl ConnectionTrait) -> SimpleExpr {
    let last_answer = lease_clock::end_of(connection, UNANSWERED);
    Expr::col(notification::Column::LeasedUntil).gt(last_answer)
}

pub(super) fn earliest_pending() -> SelectStatement {
    let mut earliest = of_outer_webhook();
    earliest
        .expr(Expr::col((notification::Entity, notification::Column::DueAt)).min())
        .cond_where(is_pending());
    earliest
}

fn of_outer_webhook() -> SelectStatement {
    let of = |notifications, webhooks| {
        Expr::col((notification::Entity, notifications)).equals((Entity, webhooks))
    };
    let mut select = Query::select();
    select
        .from(notification::Entity)
        .cond_where(of(notification::Column::StoreId, Column::StoreId))
        .cond_where(of(notification::Column::WebhookId, Column::Id));
    select
}

pub(super) fn subquery(select: SelectStatement) -> SimpleExpr {
    Expr::SubQuery(None, Box::new(select.into()))
}
