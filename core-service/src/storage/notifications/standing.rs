//! How receivers have answered: noted at the webhook, where claims and the operator's patience
//! go by it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter,
    sea_query::{Expr, ExprTrait as _},
};

use super::queue::{Owner, brought_forward};
use crate::{
    domain::{
        fairness::Standing,
        id::{StoreId, WebhookId},
    },
    storage::{
        ConnectionTrait, Error,
        entity::{
            instant::Instant,
            webhook::{Column, Entity},
        },
        padding::padded,
        webhooks::any_of,
    },
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

/// Notes how attempts ended, and gives what is to be known of webhooks with a failure. Until the
/// end of the transaction nobody disables those. A success of one that has not failed before, and
/// is as quick or slow as before, writes nothing.
pub(super) async fn note(
    transaction: &impl ConnectionTrait,
    endings: &Endings,
    now: Timestamp,
) -> Result<Failing, Error> {
    succeed(transaction, endings, &endings.succeeded).await?;
    if endings.failed.is_empty() {
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
        .filter(any_of(endings.failed.iter().copied()))
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
    let (slow, quick): (Vec<_>, Vec<_>) = owners
        .iter()
        .copied()
        .partition(|owner| endings.slow.contains(owner));
    for (owners, was_slow) in [(quick, false), (slow, true)] {
        if owners.is_empty() {
            continue;
        }
        let otherwise = Condition::any()
            .add(Column::WasSlow.is_null())
            .add(Column::WasSlow.eq(!was_slow))
            .add(Column::FailingSince.is_not_null());
        Entity::update_many()
            .col_expr(Column::WasSlow, Expr::value(was_slow))
            .col_expr(Column::FailingSince, Expr::value(None::<i64>))
            .filter(any_of(owners))
            .filter(otherwise)
            .exec(transaction)
            .await?;
    }
    Ok(())
}

/// As it is stored: whether the last attempt took long, if one has ended.
pub(super) fn standing(was_slow: Option<bool>) -> Standing {
    match was_slow {
        None => Standing::New,
        Some(false) => Standing::Answering,
        Some(true) => Standing::Slow,
    }
}
