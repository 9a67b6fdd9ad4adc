//! Rows, one module per table, grouped as the schema is. The aggregates' files beside this folder
//! convert them to domain types and back.

/// Reads a `Model` by the positions of its columns, given the names of all its fields in order. By
/// name, sea-orm formats the names of all columns for each row.
macro_rules! positional {
    ($($field:ident),+ $(,)?) => {
        impl Model {
            #[cfg(test)]
            pub(crate) const COLUMNS: &[&str] = &[$(stringify!($field)),+];

            /// Reads the columns of a row from `first` on.
            pub(crate) fn at(row: &sea_orm::QueryResult, first: usize) -> Result<Self, DbErr> {
                let mut columns = first..;
                Ok(Self {
                    $($field: super::super::next(row, &mut columns)?),+
                })
            }
        }
    };
}

mod api_clients;
mod deliveries;
mod events;
mod geography;
pub(super) mod instant;
pub(super) mod json;
mod stores;
mod webhooks;

use std::ops::RangeFrom;

use sea_orm::{DbErr, QueryResult, TryGetable};

pub(super) use self::{
    api_clients::{api_client, idempotency_key, platform_secret, signing_key},
    deliveries::{created_bytes, delivery, retail_price_use, slot_booking, task},
    events::{event, event_counter, event_sequencer},
    geography::{geocode, zone_set},
    stores::{price_list, store, time_slot},
    webhooks::{attempt, notification, receiver_host, webhook},
};

/// Reads the next column of a row.
fn next<T: TryGetable>(row: &QueryResult, columns: &mut RangeFrom<usize>) -> Result<T, DbErr> {
    row.try_get_by_index(columns.next().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use sea_orm::{IdenStatic as _, Iterable as _};

    use super::{delivery, task};

    #[test]
    fn positions_are_those_of_the_selected_columns() {
        let columns: Vec<_> = delivery::Column::iter()
            .map(|column| column.as_str())
            .collect();
        assert_eq!(delivery::Model::COLUMNS, columns);

        let columns: Vec<_> = task::Column::iter().map(|column| column.as_str()).collect();
        assert_eq!(task::Model::COLUMNS, columns);
    }
}
