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

mod tables;

use std::{collections::BTreeMap, ops::Range};

use domain::{address::Address, coverage::ServiceArea, id::ImageId, task::Package};
use jiff::Timestamp;
use sea_orm::{
    DbErr, DeriveValueType, FromJsonQueryResult, QueryResult, TryGetable,
    sqlx::{Row as _, ValueRef as _},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) use self::tables::{
    api_client, attempt, audit_event, courier, courier_list, delivery, event, idempotency_key,
    image, incident, notification, platform_secret, price_list, queued_task_change, receiver_host,
    signing_key, store, task, task_change, task_event, time_slot, webhook, zone_set,
};
use crate::Error;

/// What the declaration of a table uses.
mod column_types {
    pub(super) use std::ops::Range;

    pub(super) use sea_orm::{QueryResult, entity::prelude::*};

    pub(super) use super::{
        AddressJson, ByPosition, ImagesJson, Instant, MetadataJson, PackagesJson, ServiceAreaJson,
        TagsJson, next,
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

readable!(bool, i64, String, Uuid, Vec<u8>, Instant);
readable!(
    AddressJson,
    ImagesJson,
    MetadataJson,
    PackagesJson,
    ServiceAreaJson,
    TagsJson
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

/// The stored form of an instant: microseconds since 1970, exact and ordered on both engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, DeriveValueType)]
pub struct Instant(pub i64);

impl From<Timestamp> for Instant {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp.as_microsecond())
    }
}

impl TryFrom<Instant> for Timestamp {
    type Error = Error;

    fn try_from(instant: Instant) -> Result<Self, Self::Error> {
        Self::from_microsecond(instant.0).map_err(|error| Error::inconsistent("instant", error))
    }
}

impl Instant {
    /// An instant that may be absent.
    pub(crate) fn optional(instant: Option<Self>) -> Result<Option<Timestamp>, Error> {
        instant.map(Timestamp::try_from).transpose()
    }
}

/// Stored as JSON, like the values below, because it is read and written as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct AddressJson(pub Address);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct PackagesJson(pub Vec<Package>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct TagsJson(pub Vec<String>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct MetadataJson(pub BTreeMap<String, String>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct ImagesJson(pub Vec<ImageId>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct ServiceAreaJson(pub ServiceArea);

#[cfg(test)]
mod tests {
    use sea_orm::{IdenStatic as _, Iterable as _};
    use serde_json::{Value, json};

    use super::*;

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

    #[test]
    fn a_stored_address_is_read_and_written_unchanged() {
        let id = "01900000-0000-7000-8000-000000000001";
        let short =
            json!({ "id": id, "street_address": "1 Rue A", "latitude": 48.5, "longitude": 2.0 });
        let mut full = short.clone();
        for name in [
            "place_name",
            "contact_name",
            "telephone",
            "description",
            "postal_code",
            "locality",
            "country",
        ] {
            full[name] = Value::from(name);
        }
        for stored in [short, full] {
            let address: AddressJson = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(address).unwrap(), stored);
        }

        let nowhere =
            json!({ "id": id, "street_address": "1 Rue A", "latitude": 91.0, "longitude": 2.0 });
        let error = serde_json::from_value::<AddressJson>(nowhere).unwrap_err();
        assert!(error.to_string().contains("latitude 91"), "{error}");
    }

    #[test]
    fn stored_packages_and_service_areas_are_read_and_written_unchanged() {
        let packages = json!([["XL", 2], ["", 1]]);
        let read: PackagesJson = serde_json::from_value(packages.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), packages);
        for area in [
            json!({ "zone": "Town" }),
            json!({ "radius_meters": 5000 }),
            json!({ "center": [48.5, 2.0], "radius_meters": 5000 }),
        ] {
            let read: ServiceAreaJson = serde_json::from_value(area.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), area);
        }
        for area in [
            json!({ "radius_meters": 5 }),
            json!({ "center": [91.0, 2.0], "radius_meters": 5000 }),
        ] {
            assert!(serde_json::from_value::<ServiceAreaJson>(area).is_err());
        }
    }
}
