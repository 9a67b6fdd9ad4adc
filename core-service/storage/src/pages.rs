//! Keyset pagination of lists that are ordered by creation, newest first.

use sea_orm::{Order, sea_query::ExprTrait as _};

use super::entity::Instant;
use crate::prelude::*;

/// A position in a list that is ordered by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// In whole microseconds, as stored.
    pub created_at: Timestamp,
    pub id: Uuid,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Newest,
    OlderThan(Cursor),
    NewerThan(Cursor),
}

/// Restricts a query to the rows from a start, and orders them in the direction of reading. The
/// columns are the instant of creation and the id.
pub(super) fn start_at<E: EntityTrait>(
    query: Select<E>,
    created: E::Column,
    id: E::Column,
    start: Start,
) -> Select<E> {
    let (query, order) = match start {
        Start::Newest => (query, Order::Desc),
        Start::OlderThan(cursor) => {
            let created_at = Instant::from(cursor.created_at);
            let is_after_cursor = created.lt(created_at).or(id.lt(cursor.id));
            let query = query.filter(created.lte(created_at).and(is_after_cursor));
            (query, Order::Desc)
        }
        Start::NewerThan(cursor) => (query.filter(is_newer(created, id, cursor)), Order::Asc),
    };
    query.order_by(created, order.clone()).order_by(id, order)
}

/// Whether a row is newer than a cursor. The columns are the instant of creation and the id.
pub(super) fn is_newer<C: ColumnTrait>(created: C, id: C, cursor: Cursor) -> SimpleExpr {
    let created_at = Instant::from(cursor.created_at);
    let is_after_cursor = created.gt(created_at).or(id.gt(cursor.id));
    created.gte(created_at).and(is_after_cursor)
}

/// Reads a page of a query made by [`start_at`]. Returns its rows, newest first, and whether more
/// follow (before the page if the start is [`Start::NewerThan`]).
pub(super) async fn read<E: EntityTrait>(
    connection: &impl ConnectionTrait,
    query: Select<E>,
    start: Start,
    size: u32,
) -> Result<(Vec<E::Model>, bool), Error> {
    let rows = query.limit(limit(size)).all(connection).await?;
    Ok(cut(rows, start, size))
}

/// One row more than a page has, which shows whether more follow.
pub(super) fn limit(size: u32) -> u64 {
    u64::from(size) + 1
}

/// Makes a page of the rows that were read in the direction of reading, as [`read`] returns it.
pub(super) fn cut<T>(mut rows: Vec<T>, start: Start, size: u32) -> (Vec<T>, bool) {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let has_more = rows.len() > size;
    rows.truncate(size);
    if matches!(start, Start::NewerThan(_)) {
        rows.reverse();
    }
    (rows, has_more)
}
