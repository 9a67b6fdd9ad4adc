//! Poolers. On request, connections keep no prepared statement after its transaction: `PgBouncer` in
//! transaction mode gives a server session to another client after each transaction, and before
//! version 1.21 it does not know which statements a client has prepared.

use std::str::FromStr as _;

use sea_orm::DbErr;

use crate::driver_error;

/// The driver's URL parameter for the number of prepared statements that a connection keeps.
const STATEMENT_CACHE_CAPACITY: &str = "statement-cache-capacity";

/// The driver numbers the names of prepared statements, in each connection from 1.
const STATEMENT_NAME: &str = "sqlx_s_";

/// Whether the sessions of a `PostgreSQL` URL keep no prepared statements:
/// `statement-cache-capacity=0`.
pub fn without_prepared_statements(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    // The driver, too, uses the last one.
    let capacity = query.split('&').rev().find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name == STATEMENT_CACHE_CAPACITY).then_some(value)
    });
    url.starts_with("postgres") && capacity.map(usize::from_str) == Some(Ok(0))
}

/// The message for an error that a pooler causes by giving the sessions of prepared statements to
/// other clients; `None` for any other error.
pub fn explain_pooler(error: &DbErr) -> Option<String> {
    let error = driver_error(error)?.as_database_error()?;
    // A prepared statement that exists already, that does not exist, or with the parameters of
    // another client's statement.
    let is_of_session = matches!(error.code()?.as_ref(), "42P05" | "26000" | "08P01");
    let message = error.message();
    (is_of_session && message.contains(STATEMENT_NAME)).then(|| {
        format!(
            "a pooler gives several clients the same session of PostgreSQL ({message}): append {STATEMENT_CACHE_CAPACITY}=0 to the database's URL; or use PgBouncer in session mode, or from 1.21 on with max_prepared_statements"
        )
    })
}
