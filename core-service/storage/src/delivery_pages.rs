//! Pages of the deliveries of a store, and of all stores.

use std::cmp::Reverse;

use domain::{delivery::Delivery, id::StoreId, lifecycle::DeliveryState};
use sea_orm::{Order, Value, sea_query::ExprTrait as _};

use super::{
    deliveries,
    entity::{
        Instant,
        delivery::{self, Column},
        store,
    },
    pages::{self, Cursor, Start},
};
use crate::prelude::*;

/// Whose deliveries a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Newest first, as its own clients see them: without bookings and positions in lists of couriers.
    Own(StoreId),
    /// Newest first.
    One(StoreId),
    /// The latest end of the dropoff's window first, without those that were erased.
    All,
}

impl Stores {
    /// The position of a delivery in a list.
    pub fn cursor(self, delivery: &Delivery) -> Cursor {
        Cursor {
            created_at: match self {
                Self::Own(_) | Self::One(_) => delivery.created_at,
                // By which this list is ordered.
                Self::All => delivery.dropoff.window.before,
            },
            id: delivery.id.0,
        }
    }
}

/// Filters of a list. An absent filter matches all deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub created: Period,
    /// Of the dropoff's `before`.
    pub dropoff: Period,
    /// Of the dropoff's `before`, too.
    pub day: Period,
    pub is_completed: Option<bool>,
    pub is_cancelled: Option<bool>,
    pub state: Option<DeliveryState>,
    pub external_reference: Option<String>,
}

/// An absent bound is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    pub from: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}

/// A page of deliveries, in the order of the list, and whether more follow in the direction of
/// reading.
pub async fn read(
    connection: &impl ConnectionTrait,
    stores: Stores,
    filter: &Filter,
    start: Start,
    size: u32,
) -> Result<(Vec<Delivery>, bool), Error> {
    let columns = match stores {
        Stores::Own(_) => deliveries::SHOWN_TO_SHOPS,
        Stores::One(_) | Stores::All => deliveries::ALL,
    };
    let mut found = Vec::new();
    for part in parts(stores, filter) {
        let page = query(stores, filter, start).filter(part);
        let page = page.limit(pages::limit(size));
        found.append(&mut deliveries::read(connection, page, columns).await?);
    }
    found.sort_unstable_by_key(|delivery| {
        let cursor = stores.cursor(delivery);
        Reverse((cursor.created_at, cursor.id))
    });
    if matches!(start, Start::NewerThan(_)) {
        found.reverse();
    }
    Ok(pages::cut(found, start, size))
}

/// The parts of a list that are read one by one. A store's deliveries are read by their creation; those that were
/// created after a dropoff's end, and end before it, have an index of their own. Otherwise, a list of what ended long ago
/// would read all that was created since.
fn parts(stores: Stores, filter: &Filter) -> Vec<Condition> {
    let ends = [filter.dropoff.until, filter.day.until];
    match ends.into_iter().flatten().min() {
        Some(until) if stores != Stores::All => {
            let until = Instant::from(until);
            let is_late = Expr::col((delivery::Entity, Column::DropoffBefore))
                .lte(Expr::col((delivery::Entity, Column::CreatedAt)));
            let created_late = Condition::all().add(Column::CreatedAt.gte(until));
            vec![
                Condition::all().add(Column::CreatedAt.lt(until)),
                created_late.add(is_late),
            ]
        }
        _ => vec![Condition::all()],
    }
}

/// The query for the rows from a start, in the direction of reading.
fn query(stores: Stores, filter: &Filter, start: Start) -> Select<delivery::Entity> {
    let query = delivery::Entity::find().filter(condition(filter));
    match stores {
        Stores::Own(store_id) | Stores::One(store_id) => {
            let query = query.filter(Column::StoreId.eq(store_id.0));
            pages::start_at(query, Column::CreatedAt, Column::Id, start)
        }
        Stores::All => {
            let query = query.filter(Column::ErasedAt.is_null());
            start_at_dropoff(of_any_store(query, filter), start)
        }
    }
}

/// The index of references begins with the store.
fn of_any_store(query: Select<delivery::Entity>, filter: &Filter) -> Select<delivery::Entity> {
    if filter.external_reference.is_none() {
        return query;
    }
    let stores = Query::select()
        .column(store::Column::Id)
        .from(store::Entity)
        .take();
    query.filter(Column::StoreId.in_subquery(stores))
}

/// Like [`pages::start_at`], by a comparison of rows: many deliveries of a day end at the same instant, and none of
/// those before the start is read.
fn start_at_dropoff(query: Select<delivery::Entity>, start: Start) -> Select<delivery::Entity> {
    let key = [Column::DropoffBefore, Column::Id];
    let columns = || Expr::tuple(key.map(Expr::col));
    let position = |cursor: Cursor| {
        let values: [Value; 2] = [Instant::from(cursor.created_at).into(), cursor.id.into()];
        Expr::tuple(values.map(Expr::value))
    };
    let (query, order) = match start {
        Start::Newest => (query, Order::Desc),
        Start::OlderThan(cursor) => (query.filter(columns().lt(position(cursor))), Order::Desc),
        Start::NewerThan(cursor) => (query.filter(columns().gt(position(cursor))), Order::Asc),
    };
    key.into_iter()
        .fold(query, |query, column| query.order_by(column, order.clone()))
}

/// Uses `IS NULL` and `IS NOT NULL`, as in the conditions of the partial indexes.
fn condition(filter: &Filter) -> Condition {
    let is_set = |column: Column, is_set| {
        if is_set {
            column.is_not_null()
        } else {
            column.is_null()
        }
    };
    let period = |column: Column, period: Period| {
        Condition::all()
            .add_option(period.from.map(|from| column.gte(Instant::from(from))))
            .add_option(period.until.map(|until| column.lt(Instant::from(until))))
    };
    let is_completed = |completed| {
        if completed {
            in_index_by_state().add(Expr::cust(STATE).eq(DeliveryState::Completed.as_str()))
        } else {
            Condition::all().add(Column::CompletedAt.is_null())
        }
    };
    let is_cancelled = |cancelled| is_set(Column::CancelledAt, cancelled);
    let has_reference = |reference| Column::ExternalReference.eq(reference);
    Condition::all()
        .add(period(Column::CreatedAt, filter.created))
        .add(period(Column::DropoffBefore, filter.dropoff))
        .add(period(Column::DropoffBefore, filter.day))
        .add_option(filter.is_completed.map(is_completed))
        .add_option(filter.is_cancelled.map(is_cancelled))
        .add_option(filter.state.map(has_state))
        .add_option(filter.external_reference.as_deref().map(has_reference))
}

/// As in the index by state, which has no delivery that is only created or was cancelled.
const STATE: &str = "CASE WHEN completed_at IS NOT NULL THEN 'completed' ELSE state END";

fn in_index_by_state() -> Condition {
    let is_in_index = Condition::any()
        .add(Column::CompletedAt.is_not_null())
        .add(Column::State.is_not_null());
    Condition::all().add(is_in_index)
}

fn has_state(state: DeliveryState) -> Condition {
    match state {
        DeliveryState::Cancelled => Condition::all().add(Column::CancelledAt.is_not_null()),
        DeliveryState::Created => Condition::all()
            .add(Column::CompletedAt.is_null())
            .add(Column::CancelledAt.is_null())
            .add(Column::State.is_null()),
        // A core of an earlier version cancels a delivery without changing its state.
        state => in_index_by_state()
            .add(Column::CancelledAt.is_null())
            .add(Expr::cust(STATE).eq(state.as_str())),
    }
}

#[cfg(test)]
mod tests;
