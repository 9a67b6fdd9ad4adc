//! How receivers have answered: noted at the webhook, where claims and the operator's patience
//! go by it.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    fairness::Standing,
    id::{StoreId, WebhookId},
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter,
    sea_query::{Expr, ExprTrait as _, LockType},
};

use super::queue::{Owner, brought_forward};

use crate::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        webhook::{Column, Entity},
    },
    padding::padded,
    webhooks::{self, any_of},
};

/// How the attempts of some webhooks ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Endings {
    /// Those of whom one succeeded.
    pub(super) succeeded: BTreeSet<Owner>,
    /// Those of whom the last succeeded.
    pub(super) last_succeeded: BTreeSet<Owner>,
    /// Those of whom one failed.
    pub(super) failed: BTreeSet<Owner>,
    /// Those of whom the last took long.
    pub(super) slow: BTreeSet<Owner>,
    /// When what failed is due again.
    pub(super) due: BTreeMap<Owner, Timestamp>,
}

/// Of webhooks of whom an attempt failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failing {
    /// Since when each that is enabled has only failed.
    pub(super) since: Vec<(Owner, Instant)>,
    /// Those that are still to be told: neither deleted nor disabled.
    pub(super) enabled: BTreeSet<Owner>,
}

/// Webhooks that outcomes may change, locked.
#[derive(Clone, Debug, Default)]
pub(super) struct Locked {
    owners: BTreeSet<Owner>,
    /// Whether so that they may be disabled too.
    pub(super) may_be_disabled: bool,
}

/// Locks the webhooks at which [`note`] is to write something, and some others. A success of one
/// that has not failed before, and is as quick or slow as before, writes nothing: it locks none.
pub(super) async fn lock(
    transaction: &impl ConnectionTrait,
    endings: &Endings,
    others: &BTreeSet<Owner>,
    (gone, failing_since): (&BTreeSet<Owner>, Timestamp),
) -> Result<Locked, Error> {
    let always: BTreeSet<_> = endings.failed.union(others).copied().collect();
    if always.is_empty() && endings.succeeded.is_empty() {
        return Ok(Locked::default());
    }
    let failed = endings.failed.iter().copied();
    let may_be_disabled = !gone.is_empty()
        || (!endings.failed.is_empty()
            && webhooks::is_any_failing_since(transaction, failed, failing_since).await?);
    let mut which = any_of(always);
    for (owners, was_slow) in by_slowness(endings, &endings.succeeded) {
        if !owners.is_empty() {
            let owners = Condition::all().add(any_of(owners));
            which = which.add(owners.add(is_otherwise(was_slow)));
        }
    }
    // Whoever makes something pending holds a weaker lock: it must be there to be dropped, before
    // its webhook is disabled.
    let strength = if may_be_disabled {
        LockType::Update
    } else {
        LockType::NoKeyUpdate
    };
    Ok(Locked {
        owners: webhooks::lock(transaction, which, strength).await?,
        may_be_disabled,
    })
}

/// Notes how attempts ended at webhooks that are locked, and gives what is to be known of those
/// with a failure.
pub(super) async fn note(
    transaction: &impl ConnectionTrait,
    endings: &Endings,
    locked: &Locked,
    now: Timestamp,
) -> Result<Failing, Error> {
    let succeeded = endings.succeeded.intersection(&locked.owners);
    succeed(transaction, endings, &succeeded.copied().collect()).await?;
    let failed: Vec<_> = endings.failed.intersection(&locked.owners).collect();
    if failed.is_empty() {
        return Ok(Failing::default());
    }
    let ids = padded(endings.slow.iter().map(|(_, id)| id.0));
    let rows = Entity::update_many()
        .col_expr(Column::WasSlow, Column::Id.is_in(ids))
        .col_expr(
            Column::FailingSince,
            Expr::col(Column::FailingSince).if_null(Expr::value(Instant::from(now))),
        )
        .col_expr(
            Column::NextDueAt,
            if endings.due.is_empty() {
                Expr::col(Column::NextDueAt)
            } else {
                brought_forward(&endings.due)
            },
        )
        .filter(any_of(failed.into_iter().copied()))
        .exec_with_returning(transaction)
        .await?;
    let mixed = endings.failed.intersection(&endings.last_succeeded);
    succeed(transaction, endings, &mixed.copied().collect()).await?;
    let mut failing = Failing::default();
    for row in rows {
        let owner = (StoreId(row.store_id), WebhookId(row.id));
        if row.disabled_at.is_some() {
            continue;
        }
        failing.enabled.insert(owner);
        if let Some(since) = row.failing_since
            && !endings.succeeded.contains(&owner)
        {
            failing.since.push((owner, since));
        }
    }
    Ok(failing)
}

async fn succeed(
    transaction: &impl ConnectionTrait,
    endings: &Endings,
    owners: &BTreeSet<Owner>,
) -> Result<(), Error> {
    for (owners, was_slow) in by_slowness(endings, owners) {
        if owners.is_empty() {
            continue;
        }
        Entity::update_many()
            .col_expr(Column::WasSlow, Expr::value(was_slow))
            .col_expr(Column::FailingSince, Expr::value(None::<i64>))
            .filter(any_of(owners))
            .filter(is_otherwise(was_slow))
            .exec(transaction)
            .await?;
    }
    Ok(())
}

/// Of some webhooks, those that were quick, and those that were slow.
fn by_slowness(endings: &Endings, owners: &BTreeSet<Owner>) -> [(Vec<Owner>, bool); 2] {
    let (slow, quick) = owners
        .iter()
        .copied()
        .partition(|owner| endings.slow.contains(owner));
    [(quick, false), (slow, true)]
}

/// Whether a success as slow as this, or as quick, changes anything.
fn is_otherwise(was_slow: bool) -> Condition {
    Condition::any()
        .add(Column::WasSlow.is_null())
        .add(Column::WasSlow.eq(!was_slow))
        .add(Column::FailingSince.is_not_null())
}

/// As it is stored: whether the last attempt took long, if one has ended.
pub(super) fn standing(was_slow: Option<bool>) -> Standing {
    match was_slow {
        None => Standing::New,
        Some(false) => Standing::Answering,
        Some(true) => Standing::Slow,
    }
}
