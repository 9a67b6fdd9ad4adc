//! Pages of a store's deliveries: by the place where one begins, never by counting.

use std::collections::HashMap;

use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect,
    sea_query::ExprTrait as _,
};

use super::{
    ConnectionTrait, Error, deliveries,
    entity::{
        delivery::{self, Column},
        instant::Instant,
        task,
    },
};
use crate::domain::{
    delivery::Delivery,
    id::{DeliveryId, StoreId},
};

/// A place in a list that is ordered by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// To the microsecond.
    pub(crate) created_at: Timestamp,
    pub(crate) id: DeliveryId,
}

/// Where a page of a list begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Newest,
    OlderThan(Place),
    NewerThan(Place),
}

/// A page of a store's deliveries, newest first, and whether there are more in the direction it
/// was read.
pub(crate) async fn read(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    start: Start,
    size: u32,
) -> Result<(Vec<Delivery>, bool), Error> {
    let mut query = delivery::Entity::find().filter(Column::StoreId.eq(store_id.0));
    let order = match start {
        Start::Newest => Order::Desc,
        Start::OlderThan(Place { created_at, id }) => {
            let created_at = Instant::from(created_at);
            let beyond = Column::CreatedAt.lt(created_at).or(Column::Id.lt(id.0));
            query = query.filter(Column::CreatedAt.lte(created_at).and(beyond));
            Order::Desc
        }
        Start::NewerThan(Place { created_at, id }) => {
            let created_at = Instant::from(created_at);
            let beyond = Column::CreatedAt.gt(created_at).or(Column::Id.gt(id.0));
            query = query.filter(Column::CreatedAt.gte(created_at).and(beyond));
            Order::Asc
        }
    };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut rows = query
        .order_by(Column::CreatedAt, order.clone())
        .order_by(Column::Id, order)
        .limit(u64::try_from(size.saturating_add(1)).ok())
        .all(connection)
        .await?;
    let more = rows.len() > size;
    rows.truncate(size);
    if matches!(start, Start::NewerThan(_)) {
        rows.reverse();
    }

    let mut tasks: HashMap<_, Vec<_>> = HashMap::new();
    let found = task::Entity::find()
        .filter(task::Column::StoreId.eq(store_id.0))
        .filter(task::Column::DeliveryId.is_in(rows.iter().map(|row| row.id)))
        .all(connection)
        .await?;
    for task in found {
        tasks.entry(task.delivery_id).or_default().push(task);
    }
    let page = rows.into_iter().map(|row| {
        let tasks = tasks.remove(&row.id).unwrap_or_default();
        deliveries::assemble(&row, tasks)
    });
    Ok((page.collect::<Result<_, _>>()?, more))
}
