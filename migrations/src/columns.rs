//! Builders for instants, tables and indexes, beside those of `sea_orm_migration::schema`, so that a
//! migration reads as a list of names.

use sea_orm_migration::{
    prelude::*,
    schema::{big_integer, big_integer_null},
};

/// Microseconds since 1970-01-01T00:00:00Z.
pub(crate) fn instant(name: &'static str) -> ColumnDef {
    big_integer(name)
}

/// Microseconds since 1970-01-01T00:00:00Z.
pub(crate) fn optional_instant(name: &'static str) -> ColumnDef {
    big_integer_null(name)
}

/// A table with its columns and primary key.
pub(crate) fn table(
    name: &'static str,
    columns: impl IntoIterator<Item = ColumnDef>,
    primary_key: &[&'static str],
) -> TableCreateStatement {
    let mut table = Table::create();
    table.table(name);
    for column in columns {
        table.col(column);
    }
    let mut key = Index::create();
    for column in primary_key {
        key.col(*column);
    }
    table.primary_key(&mut key);
    table
}

/// An index on a table.
pub(crate) fn index(
    name: &'static str,
    table: &'static str,
    columns: &[&'static str],
) -> IndexCreateStatement {
    let mut index = Index::create();
    index.name(name).table(table);
    for column in columns {
        index.col(*column);
    }
    index
}

/// An index on the rows of a table that meet a condition.
pub(crate) fn partial_index(
    name: &'static str,
    table: &'static str,
    columns: &[&'static str],
    condition: &'static str,
) -> IndexCreateStatement {
    let mut index = index(name, table, columns);
    index.and_where(Expr::cust(condition));
    index
}
