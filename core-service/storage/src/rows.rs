//! Statements that many files run, with the types of this crate.

use sea_orm::{
    ActiveModelTrait, ConnectionTrait, EntityTrait, IdenStatic as _, Iterable as _,
    QueryFilter as _, QueryOrder as _, QueryResult, QuerySelect as _, QueryTrait as _, Select,
    Statement, TryGetable, Value,
    sea_query::{Expr, ExprTrait as _},
};

use uuid::Uuid;

use super::Error;

/// The first row of a query, as a domain type.
pub(super) async fn first<E, T>(
    connection: &impl ConnectionTrait,
    query: Select<E>,
) -> Result<Option<T>, Error>
where
    E: EntityTrait,
    T: TryFrom<E::Model, Error = Error>,
{
    query.one(connection).await?.map(T::try_from).transpose()
}

/// All rows of a query, as domain types.
pub(super) async fn all<E, T>(
    connection: &impl ConnectionTrait,
    query: Select<E>,
) -> Result<Vec<T>, Error>
where
    E: EntityTrait,
    T: TryFrom<E::Model, Error = Error>,
{
    let rows = query.all(connection).await?.into_iter();
    rows.map(T::try_from).collect()
}

/// Whether a query has any row.
pub(super) async fn exist<E: EntityTrait>(
    connection: &impl ConnectionTrait,
    query: Select<E>,
) -> Result<bool, Error> {
    let query = query.select_only().expr(Expr::cust("1")).limit(1);
    Ok(connection.query_one(&query.into_query()).await?.is_some())
}

/// The names of a table's columns.
pub(super) fn names<E: EntityTrait>() -> Vec<String> {
    let columns = E::Column::iter();
    columns
        .map(|column| format!("\"{}\"", column.as_str()))
        .collect()
}

/// The columns of a table with its name.
pub(super) fn columns<E: EntityTrait>() -> impl Iterator<Item = String> {
    let (table, names) = (E::default().table_name(), names::<E>());
    names.into_iter().map(move |name| format!("{table}.{name}"))
}

/// The rows of a `VALUES` list, with the next parameters: `($1, $2), ($3, $4)`.
pub(super) fn placeholders(
    parameters: &mut impl Iterator<Item = usize>,
    rows: usize,
    columns: usize,
) -> String {
    let rows = (0..rows).map(|_| {
        let numbers = parameters.by_ref().take(columns);
        let row: Vec<_> = numbers.map(|number| format!("${number}")).collect();
        format!("({})", row.join(", "))
    });
    rows.collect::<Vec<_>>().join(", ")
}

/// A `VALUES` list of pairs of ids with the parameters from `$1` on, and their values; padded. In pairs: with a list of stores
/// and one of ids, `PostgreSQL` may read all rows of a large store.
pub(super) fn pairs(pairs: &[(Uuid, Uuid)]) -> (String, Vec<Value>) {
    let pairs = padded(pairs.iter().copied());
    let list = format!("VALUES {}", placeholders(&mut (1..), pairs.len(), 2));
    let values = pairs.into_iter();
    let values = values.flat_map(|(first, second)| [first.into(), second.into()]);
    (list, values.collect())
}

/// The list, extended to the next power of two by repeating its last element, which does not change the
/// meaning of a set. Databases and drivers identify a statement by its text: a text for every list length
/// would be parsed and planned again each time, and would evict all other statements from their caches.
pub(super) fn padded<T: Clone>(list: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = list.into_iter().collect();
    if let Some(last) = list.last().cloned() {
        list.resize(list.len().next_power_of_two(), last);
    }
    list
}

/// Orders a query by the columns of a key, and restricts it to the rows after a value of the key, if
/// there is one.
pub(super) fn after<E: EntityTrait, const N: usize>(
    query: Select<E>,
    key: [E::Column; N],
    after: Option<[Value; N]>,
) -> Select<E> {
    let query = key
        .iter()
        .fold(query, |query, column| query.order_by_asc(*column));
    query.apply_if(after, |query, after| {
        let after = Expr::tuple(after.map(Expr::value));
        query.filter(Expr::tuple(key.map(Expr::col)).gt(after))
    })
}

pub(super) async fn insert<A: ActiveModelTrait>(
    connection: &impl ConnectionTrait,
    row: A,
) -> Result<(), Error> {
    let insert = A::Entity::insert(row);
    insert.exec_without_returning(connection).await?;
    Ok(())
}

/// Updates the row with the primary key of `row`: those columns that are set in `row`. Fails if there
/// is none.
pub(super) async fn update<A: ActiveModelTrait>(
    connection: &impl ConnectionTrait,
    row: A,
) -> Result<(), Error> {
    let update = A::Entity::update(row);
    update.exec_without_returning(connection).await?;
    Ok(())
}

/// Executes a statement with parameters (`$1` …). Returns how many rows it changed.
pub(super) async fn execute(
    connection: &impl ConnectionTrait,
    sql: &str,
    parameters: impl IntoIterator<Item = Value>,
) -> Result<u64, Error> {
    let backend = connection.get_database_backend();
    let statement = Statement::from_sql_and_values(backend, sql, parameters);
    Ok(connection.execute_raw(statement).await?.rows_affected())
}

/// Like [`execute`], without the number of rows.
pub(super) async fn run(
    connection: &impl ConnectionTrait,
    sql: &str,
    parameters: impl IntoIterator<Item = Value>,
) -> Result<(), Error> {
    execute(connection, sql, parameters).await.map(|_| ())
}

/// The rows that a statement with parameters (`$1` …) returns.
pub(super) async fn query(
    connection: &impl ConnectionTrait,
    sql: &str,
    parameters: impl IntoIterator<Item = Value>,
) -> Result<Vec<QueryResult>, Error> {
    let backend = connection.get_database_backend();
    let statement = Statement::from_sql_and_values(backend, sql, parameters);
    Ok(connection.query_all_raw(statement).await?)
}

/// The first column of the first row that a statement returns, or the default if there is none.
pub(super) async fn value<T: TryGetable + Default>(
    connection: &impl ConnectionTrait,
    sql: &str,
) -> Result<T, Error> {
    Ok(find_value(connection, sql, []).await?.unwrap_or_default())
}

/// The first column of the first row that a statement with parameters (`$1` …) returns.
pub(super) async fn find_value<T: TryGetable>(
    connection: &impl ConnectionTrait,
    sql: &str,
    parameters: impl IntoIterator<Item = Value>,
) -> Result<Option<T>, Error> {
    let backend = connection.get_database_backend();
    let statement = Statement::from_sql_and_values(backend, sql, parameters);
    let row = connection.query_one_raw(statement).await?;
    Ok(row.map(|row| row.try_get_by_index(0)).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_extended_to_a_power_of_two_with_its_last_element() {
        assert!(padded(Vec::<u8>::new()).is_empty());
        assert_eq!(padded([1]), [1]);
        assert_eq!(padded([1, 2, 3]), [1, 2, 3, 3]);
        assert_eq!(padded([1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(padded(0..100).len(), 128);
    }
}
