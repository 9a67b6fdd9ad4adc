//! Hosts of unproven webhooks, by store. Only one notification is in flight to all of a store's
//! unproven webhooks at a host. After a few failed attempts, a pause follows each further one.
//! Stores do not share this state, so that none delays another at a common host.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use domain::{
    id::StoreId,
    scheduling::{FAILURE_RETENTION, PAUSE_EXTENSION, PAUSES},
};
use jiff::SignedDuration;
use sea_orm::sea_query::ExprTrait as _;

use super::dispatch::{any_of, lock};
use crate::prelude::*;
use crate::{
    entity::{
        Instant,
        receiver_host::{Column, Entity},
        webhook,
    },
    lease_clock,
};

/// The outcomes of attempts at hosts of unproven webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOutcomes {
    /// Those that accepted a notification of a store for the first time.
    pub accepted: BTreeSet<(StoreId, String)>,
    /// Those at which an attempt for a store failed.
    pub failed: BTreeSet<(StoreId, String)>,
}

impl HostOutcomes {
    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.failed.is_empty()
    }
}

/// Whether the host of the webhook in the outer statement may be called for its store's unproven
/// webhooks. Webhooks with failed attempts wait a little longer than others.
pub(crate) fn is_free(connection: &impl ConnectionTrait, now: Timestamp) -> SimpleExpr {
    let paused_until: SimpleExpr = CaseStatement::new()
        .case(
            webhook::Column::ReceiverHealth.is_null(),
            Expr::cust(pause_end(SignedDuration::ZERO)),
        )
        .finally(Expr::cust(pause_end(PAUSE_EXTENSION)))
        .into();
    let is_occupied = Condition::any()
        .add(Expr::col(Column::InFlightUntil).gt(lease_clock::now(connection)))
        .add(paused_until.gt(Instant::from(now)));
    let mut occupied = Query::select();
    occupied
        .expr(Expr::value(1))
        .from(Entity)
        .and_where(Expr::cust(
            "receiver_hosts.store_id = webhooks.store_id AND receiver_hosts.host = webhooks.host",
        ))
        .cond_where(is_occupied);
    Expr::not_exists(occupied)
}

/// When the pause of a host ends, by its number of failures. `extension` is added to every pause that
/// is not zero.
fn pause_end(extension: SignedDuration) -> String {
    let microseconds = |seconds: i64| match seconds {
        0 => 0,
        seconds => (SignedDuration::from_secs(seconds) + extension).as_micros(),
    };
    let pauses = std::iter::once(0).chain(PAUSES).map(microseconds);
    let by_failures: Vec<_> = (0_i64..)
        .zip(pauses)
        .map(|(failures, pause)| format!("WHEN {failures} THEN {pause}"))
        .collect();
    let last = microseconds(PAUSES.last().copied().unwrap_or_default());
    format!(
        "(receiver_hosts.failed_at + CASE receiver_hosts.failures {} ELSE {last} END)",
        by_failures.join(" ")
    )
}

/// Occupies free hosts for a notification each, until its outcome or the end of its lease. Returns
/// those that were free.
pub(crate) async fn occupy(
    transaction: &impl ConnectionTrait,
    hosts: BTreeSet<(StoreId, &str)>,
    lease: Duration,
    now: Timestamp,
) -> Result<HashSet<(StoreId, String)>, Error> {
    if hosts.is_empty() {
        return Ok(HashSet::new());
    }
    let (expiry, expires_at) = lease_clock::expiry_sql(transaction, lease, "$1");
    let (now_of_leases, no_wait) = lease_clock::expiry_sql(transaction, Duration::ZERO, "$2");
    let rows: Vec<_> = (4..)
        .step_by(2)
        .take(hosts.len())
        .map(|number| format!("(${number}, ${}, {expiry}, 0, 0)", number + 1))
        .collect();
    let insert = format!(
        "INSERT INTO receiver_hosts (store_id, host, in_flight_until, failures, failed_at) VALUES {}
        ON CONFLICT (store_id, host) DO UPDATE SET in_flight_until = excluded.in_flight_until
        WHERE receiver_hosts.in_flight_until <= {now_of_leases} AND {} <= $3
        RETURNING store_id, host",
        rows.join(", "),
        pause_end(SignedDuration::ZERO)
    );
    let hosts = hosts
        .into_iter()
        .flat_map(|(store_id, host)| [store_id.0.into(), host.into()]);
    let values = [expires_at, no_wait, Instant::from(now).into()];
    let rows = rows::query(transaction, &insert, values.into_iter().chain(hosts)).await?;
    rows.iter()
        .map(|row| Ok((StoreId(row.try_get_by_index(0)?), row.try_get_by_index(1)?)))
        .collect()
}

/// For hosts that accepted a notification, makes the store's webhooks there proven, except those
/// whose last attempt failed. Counts the failures of other hosts.
pub async fn record_host_outcomes(
    transaction: &impl ConnectionTrait,
    outcomes: &HostOutcomes,
    now: Timestamp,
) -> Result<(), Error> {
    if !outcomes.accepted.is_empty() {
        prove_others(transaction, &outcomes.accepted).await?;
        Entity::delete_many()
            .filter(is_any(&outcomes.accepted, Column::StoreId, Column::Host))
            .exec(transaction)
            .await?;
    }
    if !outcomes.failed.is_empty() {
        count_failures(transaction, &outcomes.failed, now).await?;
    }
    Ok(())
}

/// Whether the store and the host in two columns are any of these.
fn is_any<C: ColumnTrait>(
    hosts: &BTreeSet<(StoreId, String)>,
    store_column: C,
    host_column: C,
) -> Condition {
    hosts
        .iter()
        .fold(Condition::any(), |any, (store_id, host)| {
            any.add(store_column.eq(store_id.0).and(host_column.eq(host)))
        })
}

/// Makes the webhooks of stores at hosts proven, except those whose last attempt failed.
async fn prove_others(
    transaction: &impl ConnectionTrait,
    accepted: &BTreeSet<(StoreId, String)>,
) -> Result<(), Error> {
    let (store, host) = (webhook::Column::StoreId, webhook::Column::Host);
    let are_others = Condition::all()
        .add(is_any(accepted, store, host))
        .add(webhook::Column::IsProven.eq(false))
        .add(webhook::Column::FailingSince.is_null());
    let others = lock(transaction, are_others, LockType::NoKeyUpdate).await?;
    if others.is_empty() {
        return Ok(());
    }
    webhook::Entity::update_many()
        .col_expr(webhook::Column::IsProven, Expr::value(true))
        .filter(any_of(others))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Counts a failure of each host, which is free now: the attempt has ended.
async fn count_failures(
    transaction: &impl ConnectionTrait,
    hosts: &BTreeSet<(StoreId, String)>,
    now: Timestamp,
) -> Result<(), Error> {
    let count = format!(
        "INSERT INTO receiver_hosts (store_id, host, in_flight_until, failures, failed_at) VALUES {}
            ON CONFLICT (store_id, host) DO UPDATE SET
                in_flight_until = excluded.in_flight_until,
                failures = receiver_hosts.failures + 1,
                failed_at = excluded.failed_at",
        rows::placeholders(&mut (1..), hosts.len(), 5)
    );
    let now = Instant::from(now);
    let values = hosts.iter().flat_map(|(store_id, host)| {
        [
            store_id.0.into(),
            host.as_str().into(),
            0_i64.into(),
            1_i64.into(),
            now.into(),
        ]
    });
    rows::run(transaction, &count, values).await
}

/// Frees the hosts of unproven webhooks whose leases are released.
pub(crate) async fn free(
    transaction: &impl ConnectionTrait,
    webhooks: impl IntoIterator<Item = Uuid>,
) -> Result<(), Error> {
    let hosts = webhook::Entity::find()
        .select_only()
        .columns([webhook::Column::StoreId, webhook::Column::Host])
        .filter(webhook::Column::Id.is_in(padded(webhooks)))
        .filter(webhook::Column::IsProven.eq(false))
        .into_query();
    Entity::update_many()
        .col_expr(Column::InFlightUntil, Expr::value(0_i64))
        .filter(
            Expr::tuple([Expr::col(Column::StoreId), Expr::col(Column::Host)]).in_subquery(hosts),
        )
        .exec(transaction)
        .await?;
    Ok(())
}

/// Lets each host get its next notification of unproven webhooks: the previous process had another
/// lease clock.
pub async fn release_all_hosts(transaction: &impl ConnectionTrait) -> Result<(), Error> {
    let update = "UPDATE receiver_hosts SET in_flight_until = 0";
    rows::run(transaction, update, []).await
}

/// Removes hosts without a failure within [`FAILURE_RETENTION`], unless a notification is in flight.
pub async fn remove_old_failures(
    transaction: &impl ConnectionTrait,
    now: Timestamp,
) -> Result<(), Error> {
    let before = now
        .saturating_sub(FAILURE_RETENTION)
        .unwrap_or(Timestamp::MIN);
    Entity::delete_many()
        .filter(Column::FailedAt.lt(Instant::from(before)))
        .filter(Expr::col(Column::InFlightUntil).lt(lease_clock::now(transaction)))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Whether attempts for unproven webhooks of a store at a host have failed since one was accepted.
pub(super) async fn has_failed(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    host: &str,
) -> Result<bool, Error> {
    let host = Entity::find_by_id((store_id.0, host.to_owned()));
    rows::exist(connection, host.filter(Column::Failures.gt(0))).await
}
