//! Leases: what is due is taken under one, and given back when it ends without an outcome.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use domain::{
    fairness::{Room, Standing},
    id::{DeliveryId, NotificationId, StoreId, WebhookId},
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect,
    sea_query::{Alias, Expr, ExprTrait as _, Query},
};
use uuid::Uuid;

use super::{
    LEASED, Owed, PENDING,
    due::{Due, due_of},
    is_leased, is_pending, owed,
    queue::{self, Turn},
};

use crate::{
    ConnectionTrait, Error,
    entity::notification::{Column, Entity, Model},
    lease_clock,
    padding::padded,
    webhooks::Target,
};

/// A notification under a lease, with where it goes.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub id: NotificationId,
    pub event: String,
    pub delivery_id: DeliveryId,
    /// How many attempts have ended.
    pub attempts: u32,
    pub standing: Standing,
    pub target: Target,
}

/// What a claim took.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    pub claimed: Vec<Claimed>,
    /// Whether it was all for which there were places.
    pub is_all: bool,
}

impl Claimed {
    /// One that is leased from its birth.
    pub fn born(owed: &Owed) -> Self {
        Self {
            id: owed.id,
            event: owed.event.as_str().to_owned(),
            delivery_id: owed.delivery_id,
            attempts: 0,
            standing: owed.standing,
            target: owed.target.clone(),
        }
    }
}

/// Takes due notifications under a lease, webhook by webhook, as far as there is room.
pub async fn claim(
    transaction: &impl ConnectionTrait,
    room: &Room,
    lease: (Uuid, Duration),
    now: Timestamp,
) -> Result<Claim, Error> {
    let turns = queue::turns(transaction, room, now).await?;
    take_turns(transaction, room, turns, lease, now).await
}

/// Takes what is due of those whose turn it is.
pub(super) async fn take_turns(
    transaction: &impl ConnectionTrait,
    room: &Room,
    turns: Vec<Turn>,
    lease: (Uuid, Duration),
    now: Timestamp,
) -> Result<Claim, Error> {
    let is_fewer = |count: usize, most| u32::try_from(count).is_ok_and(|count| count < most);
    let had_all_turns = is_fewer(turns.len(), queue::most_turns(room));
    let standings: Vec<_> = turns
        .iter()
        .map(|turn| (turn.standing, turn.in_flight))
        .collect();
    let shares: Vec<_> = turns
        .iter()
        .zip(room.share(&standings))
        .filter(|(_, share)| *share > 0)
        .collect();
    if shares.is_empty() {
        return Ok(Claim::default());
    }
    // One more of each tells whether more is due than it has places.
    let wanted = shares.iter().map(|(turn, share)| (*turn, share + 1));
    let mut due = due_of(transaction, wanted.collect(), now).await?;
    let (mut more_due, mut exhausted) = (Vec::new(), Vec::new());
    let mut ids = Vec::new();
    for (turn, share) in &shares {
        let Due {
            ids: mut own,
            in_flight,
        } = due.remove(&turn.owner.1).unwrap_or_default();
        let places = room.places.of_one(turn.standing);
        let share = std::cmp::min(places.saturating_sub(in_flight), *share);
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        let ended = if own.len() > share {
            &mut more_due
        } else {
            &mut exhausted
        };
        ended.push(turn.owner);
        own.truncate(share);
        ids.append(&mut own);
    }

    let rows = take(transaction, ids, lease).await?;
    queue::move_on(transaction, &more_due, &exhausted, now).await?;
    let claimed = addressed(rows, turns);
    let is_all = had_all_turns && is_fewer(claimed.len(), room.free);
    Ok(Claim { claimed, is_all })
}

async fn take(
    transaction: &impl ConnectionTrait,
    ids: Vec<Uuid>,
    (lease_token, lease): (Uuid, Duration),
) -> Result<Vec<Model>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::update_many()
        .col_expr(Column::State, Expr::value(LEASED))
        .col_expr(Column::LeaseToken, Expr::value(lease_token))
        .col_expr(Column::LeasedUntil, lease_clock::end_of(transaction, lease))
        .filter(Column::Id.is_in(padded(ids)))
        .filter(is_pending())
        .exec_with_returning(transaction)
        .await?;
    Ok(rows)
}

/// Notifications with where they go.
fn addressed(rows: Vec<Model>, turns: Vec<Turn>) -> Vec<Claimed> {
    let turns: HashMap<_, _> = turns
        .into_iter()
        .map(|turn| (turn.owner.1.0, turn))
        .collect();
    rows.into_iter()
        .filter_map(|row| {
            let turn = turns.get(&row.webhook_id)?;
            Some(Claimed {
                id: NotificationId(row.id),
                event: row.event,
                delivery_id: DeliveryId(row.delivery_id),
                attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
                standing: turn.standing,
                target: turn.target.clone(),
            })
        })
        .collect()
}

/// Makes pending again what is still held under given leases.
pub async fn release(
    transaction: &impl ConnectionTrait,
    held: &[(NotificationId, Uuid)],
    now: Timestamp,
) -> Result<u64, Error> {
    if held.is_empty() {
        return Ok(0);
    }
    let held = under_leases(held.iter().copied()).add(is_leased());
    make_pending(transaction, held, now).await
}

/// Makes pending again whatever is leased.
pub async fn release_all(transaction: &impl ConnectionTrait, now: Timestamp) -> Result<u64, Error> {
    make_pending(transaction, Condition::all().add(is_leased()), now).await
}

/// Gives whatever is leased a whole lease from now on: the clock of a process before this one was
/// another, by which none is surely over, or is soon.
pub async fn renew_all(transaction: &impl ConnectionTrait, lease: Duration) -> Result<u64, Error> {
    let renewed = Entity::update_many()
        .col_expr(Column::LeasedUntil, lease_clock::end_of(transaction, lease))
        .filter(is_leased())
        .exec(transaction)
        .await?;
    Ok(renewed.rows_affected)
}

/// Makes what was leased pending again once its lease is over, by the leases' clock.
/// How many that were.
pub async fn release_expired(
    transaction: &impl ConnectionTrait,
    now: Timestamp,
) -> Result<u64, Error> {
    make_pending(transaction, expired(transaction), now).await
}

async fn make_pending(
    transaction: &impl ConnectionTrait,
    leased: Condition,
    now: Timestamp,
) -> Result<u64, Error> {
    // What somebody else has locked is just reported, given back or dropped.
    let ids = owed::lock_free(transaction, leased).await?;
    if ids.is_empty() {
        return Ok(0);
    }
    let rows = Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(Column::Id.is_in(padded(ids)))
        .exec_with_returning(transaction)
        .await?;
    let owners: BTreeMap<_, _> = rows
        .iter()
        .map(|row| ((StoreId(row.store_id), WebhookId(row.webhook_id)), now))
        .collect();
    let there = queue::wake(transaction, &owners).await?;
    let orphans: Vec<_> = rows
        .iter()
        .filter(|row| !there.contains(&WebhookId(row.webhook_id)))
        .map(|row| row.id)
        .collect();
    if !orphans.is_empty() {
        let which = Condition::all().add(Column::Id.is_in(orphans));
        owed::drop_all(transaction, which, now).await?;
    }
    Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
}

/// Whether a lease is over: a look that writes nothing.
pub async fn is_any_expired(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    let found: Option<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(expired(connection))
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// What was last held under one of some leases.
pub(super) fn under_leases(leases: impl IntoIterator<Item = (NotificationId, Uuid)>) -> Condition {
    let leases = padded(
        leases
            .into_iter()
            .map(|(id, lease_token)| (id.0, lease_token)),
    );
    if leases.is_empty() {
        return Condition::all().add(Expr::cust("1 = 0"));
    }
    // Joined, not alternatives: those would all be judged for each row. And the ids once more:
    // without them, a planner that takes what is leased for little compares every such row with
    // every lease.
    let ids = leases.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let mut held = Query::select();
    held.expr(Expr::cust("*"))
        .from_values(leases, Alias::new("held"));
    let lease = Expr::tuple([Expr::col(Column::Id), Expr::col(Column::LeaseToken)]);
    Condition::all()
        .add(Column::Id.is_in(ids))
        .add(lease.in_subquery(held))
}

fn expired(connection: &impl ConnectionTrait) -> Condition {
    Condition::all()
        .add(is_leased())
        .add(Expr::col(Column::LeasedUntil).lt(lease_clock::now(connection)))
}
