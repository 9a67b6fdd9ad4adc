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
    /// Those of whom the last to fail did so at the deadline.
    pub(super) timed_out: BTreeSet<Owner>,
    /// When what failed is due again.
    pub(super) due: BTreeMap<Owner, Timestamp>,
}

/// Of webhooks of whom an attempt failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failing {
    /// Since when each has only failed.
    pub(super) since: Vec<(Owner, Instant)>,
    /// Those that are still to be told: neither deleted nor disabled.
    pub(super) enabled: BTreeSet<Owner>,
}

/// Notes how attempts ended, and gives what is to be known of webhooks with a failure. Until the
/// end of the transaction nobody disables those. A success of one that has not failed before
/// writes nothing.
pub(super) async fn note(
    transaction: &impl ConnectionTrait,
    endings: &Endings,
    now: Timestamp,
) -> Result<Failing, Error> {
    succeed(transaction, &endings.succeeded).await?;
    if endings.failed.is_empty() {
        return Ok(Failing::default());
    }
    let ids = endings.timed_out.iter().map(|(_, id)| id.0);
    let rows = Entity::update_many()
        .col_expr(Column::TimedOut, Column::Id.is_in(ids))
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
    succeed(transaction, &mixed.copied().collect()).await?;
    let mut failing = Failing::default();
    for row in rows {
        let owner = (StoreId(row.store_id), WebhookId(row.id));
        if row.disabled_at.is_none() {
            failing.enabled.insert(owner);
        }
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
    owners: &BTreeSet<Owner>,
) -> Result<(), Error> {
    if owners.is_empty() {
        return Ok(());
    }
    let otherwise = Condition::any()
        .add(Column::TimedOut.is_null())
        .add(Column::TimedOut.eq(true))
        .add(Column::FailingSince.is_not_null());
    Entity::update_many()
        .col_expr(Column::TimedOut, Expr::value(false))
        .col_expr(Column::FailingSince, Expr::value(None::<i64>))
        .filter(any_of(owners.iter().copied()))
        .filter(otherwise)
        .exec(transaction)
        .await?;
    Ok(())
}

/// As it is stored: how the last attempt ended, if one has.
pub(super) fn standing(timed_out: Option<bool>) -> Standing {
    match timed_out {
        None => Standing::New,
        Some(false) => Standing::Answering,
        Some(true) => Standing::TimedOut,
    }
}
