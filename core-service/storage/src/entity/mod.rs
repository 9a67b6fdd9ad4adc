//! Tables, their rows, and the types of their columns.

/// Declares a table: its name, the columns of its primary key, and the others.
macro_rules! table {
    (
        mod $table:ident = $name:literal;
        key($($key:ident: $key_type:ty),+);
        $($(#[$column_doc:meta])* $column:ident: $column_type:ty,)+
    ) => {
        pub(crate) mod $table {
            use super::super::column_types::*;

            #[derive(Clone, Debug, DeriveEntityModel)]
            #[sea_orm(table_name = $name)]
            pub(crate) struct Model {
                $(#[sea_orm(primary_key, auto_increment = false)] pub $key: $key_type,)+
                $($(#[$column_doc])* pub $column: $column_type,)+
            }

            impl ByPosition for Model {
                const COLUMNS: &[&str] = &[$(stringify!($key),)+ $(stringify!($column)),+];

                fn first(row: &QueryResult, mut columns: Range<usize>) -> Result<Self, DbErr> {
                    Ok(Self {
                        $($key: next(row, &mut columns)?,)+
                        $($column: next(row, &mut columns)?),+
                    })
                }
            }

            #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
            pub(crate) enum Relation {}

            impl ActiveModelBehavior for ActiveModel {}
        }
    };
}

pub(super) mod instant;
pub(super) mod json;
mod tables;

use std::ops::Range;

use sea_orm::{
    DbErr, QueryResult, TryGetable,
    sqlx::{Row as _, ValueRef as _},
};
use uuid::Uuid;

pub(super) use self::tables::{
    api_client, attempt, courier, courier_list, delivery, event, idempotency_key, incident,
    notification, platform_secret, price_list, queued_task_change, receiver_host, signing_key,
    store, task, task_change, task_event, time_slot, webhook, zone_set,
};

/// What the declaration of a table uses.
mod column_types {
    pub(super) use std::ops::Range;

    pub(super) use sea_orm::{QueryResult, entity::prelude::*};

    pub(super) use super::{
        ByPosition,
        instant::Instant,
        json::{AddressJson, MetadataJson, PackagesJson, ServiceAreaJson, TagsJson},
        next,
    };
}

/// A row that is read by the positions of its columns. By name, sea-orm formats the names of all
/// columns for each row.
pub(super) trait ByPosition: Sized {
    const COLUMNS: &[&str];

    /// Reads all columns, from `first` on.
    fn at(row: &QueryResult, first: usize) -> Result<Self, DbErr> {
        Self::first(row, first..first + Self::COLUMNS.len())
    }

    /// Reads the first columns of the table, which are these of the row. The others are absent.
    fn first(row: &QueryResult, columns: Range<usize>) -> Result<Self, DbErr>;
}

/// Reads the next column of a row.
fn next<T: Readable>(row: &QueryResult, columns: &mut Range<usize>) -> Result<T, DbErr> {
    columns
        .next()
        .map_or_else(T::absent, |column| T::read(row, column))
}

/// The type of a column.
trait Readable: Sized {
    fn read(row: &QueryResult, column: usize) -> Result<Self, DbErr>;

    /// Stands for a column that is not read.
    fn absent() -> Result<Self, DbErr> {
        Err(DbErr::Type("a column that must be read".to_owned()))
    }
}

macro_rules! readable {
    ($($type:ty),+) => {
        $(impl Readable for $type {
            fn read(row: &QueryResult, column: usize) -> Result<Self, DbErr> {
                row.try_get_by_index(column)
            }
        })+
    };
}

readable!(bool, i64, String, Uuid, Vec<u8>, instant::Instant);
readable!(
    json::AddressJson,
    json::MetadataJson,
    json::PackagesJson,
    json::ServiceAreaJson,
    json::TagsJson
);

/// sea-orm formats an error for each `NULL`, and then drops it.
impl<T: TryGetable> Readable for Option<T> {
    fn read(row: &QueryResult, column: usize) -> Result<Self, DbErr> {
        let is_null = match (row.try_as_pg_row(), row.try_as_sqlite_row()) {
            (Some(row), _) => row.try_get_raw(column).is_ok_and(|value| value.is_null()),
            (_, Some(row)) => row.try_get_raw(column).is_ok_and(|value| value.is_null()),
            _ => false,
        };
        if is_null {
            return Ok(None);
        }
        row.try_get_by_index(column)
    }

    fn absent() -> Result<Self, DbErr> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::{IdenStatic as _, Iterable as _};

    use super::{ByPosition as _, delivery, store, task};

    #[test]
    fn positions_are_those_of_the_selected_columns() {
        let columns: Vec<_> = delivery::Column::iter()
            .map(|column| column.as_str())
            .collect();
        assert_eq!(delivery::Model::COLUMNS, columns);

        let columns: Vec<_> = task::Column::iter().map(|column| column.as_str()).collect();
        assert_eq!(task::Model::COLUMNS, columns);

        let columns: Vec<_> = store::Column::iter()
            .map(|column| column.as_str())
            .collect();
        assert_eq!(store::Model::COLUMNS, columns);
    }
}
