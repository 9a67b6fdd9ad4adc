//! Builders for columns, tables and indexes, so that a migration reads as a list of names.

use sea_orm_migration::prelude::*;

pub(crate) fn id(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).uuid().not_null().take()
}

pub(crate) fn optional_id(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).uuid().null().take()
}

pub(crate) fn text(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).text().not_null().take()
}

pub(crate) fn optional_text(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).text().null().take()
}

pub(crate) fn integer(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().not_null().take()
}

pub(crate) fn optional_integer(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().null().take()
}

/// Microseconds since 1970-01-01T00:00:00Z.
pub(crate) fn instant(name: &'static str) -> ColumnDef {
    integer(name)
}

/// Microseconds since 1970-01-01T00:00:00Z.
pub(crate) fn optional_instant(name: &'static str) -> ColumnDef {
    optional_integer(name)
}

pub(crate) fn json(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).json_binary().not_null().take()
}

pub(crate) fn optional_json(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).json_binary().null().take()
}

pub(crate) fn bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).blob().not_null().take()
}

pub(crate) fn optional_bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).blob().null().take()
}

pub(crate) fn flag(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).boolean().not_null().take()
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
