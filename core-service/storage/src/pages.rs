//! Pages of what is listed newest first: by the place where one begins, never by counting.

use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select,
    sea_query::ExprTrait as _,
};
use uuid::Uuid;

use super::{ConnectionTrait, Error, entity::instant::Instant};

/// A place in a list that is ordered by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// To the microsecond.
    pub created_at: Timestamp,
    pub id: Uuid,
}

/// Where a page of a list begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Newest,
    OlderThan(Place),
    NewerThan(Place),
}

/// The rows of a query from a place on, in the direction of reading. The columns are when a row
/// was created, and its id.
pub(super) fn from<E: EntityTrait>(
    query: Select<E>,
    (created, id): (E::Column, E::Column),
    start: Start,
) -> Select<E> {
    let (query, order) = match start {
        Start::Newest => (query, Order::Desc),
        Start::OlderThan(place) => {
            let created_at = Instant::from(place.created_at);
            let beyond = created.lt(created_at).or(id.lt(place.id));
            let query = query.filter(created.lte(created_at).and(beyond));
            (query, Order::Desc)
        }
        Start::NewerThan(place) => {
            let created_at = Instant::from(place.created_at);
            let beyond = created.gt(created_at).or(id.gt(place.id));
            let query = query.filter(created.gte(created_at).and(beyond));
            (query, Order::Asc)
        }
    };
    query.order_by(created, order.clone()).order_by(id, order)
}

/// A page of so many rows of a query made by [`from`], newest first, and whether there are more
/// in the direction it was read.
pub(super) async fn read<E: EntityTrait>(
    connection: &impl ConnectionTrait,
    query: Select<E>,
    start: Start,
    size: u32,
) -> Result<(Vec<E::Model>, bool), Error> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut rows = query
        .limit(u64::try_from(size.saturating_add(1)).ok())
        .all(connection)
        .await?;
    let more = rows.len() > size;
    rows.truncate(size);
    if matches!(start, Start::NewerThan(_)) {
        rows.reverse();
    }
    Ok((rows, more))
}
