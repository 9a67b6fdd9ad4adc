//! Pages of a store's deliveries.

use std::cmp::Reverse;

use domain::{delivery::Delivery, id::StoreId, lifecycle::DeliveryState};
use sea_orm::sea_query::ExprTrait as _;

use super::{
    deliveries,
    entity::{
        delivery::{self, Column},
        instant::Instant,
    },
    pages::{self, Start},
};
use crate::prelude::*;

/// Filters of a list. An absent filter matches all deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub created: Period,
    /// Of the dropoff's `before`.
    pub dropoff: Period,
    pub is_completed: Option<bool>,
    pub is_cancelled: Option<bool>,
    pub state: Option<DeliveryState>,
    pub external_reference: Option<String>,
}

/// An absent bound is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    pub from: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}

/// A page of a store's deliveries, newest first, and whether more follow in the direction of
/// reading.
pub async fn read(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    filter: &Filter,
    start: Start,
    size: u32,
) -> Result<(Vec<Delivery>, bool), Error> {
    let page = query(store_id, filter, start).limit(pages::limit(size));
    let mut found = deliveries::read(connection, page).await?;
    found.sort_unstable_by_key(|delivery| Reverse((delivery.created_at, delivery.id.0)));
    if matches!(start, Start::NewerThan(_)) {
        found.reverse();
    }
    Ok(pages::cut(found, start, size))
}

/// The query for the rows from a start, in the direction of reading.
fn query(store_id: StoreId, filter: &Filter, start: Start) -> Select<delivery::Entity> {
    let query = delivery::Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(condition(filter));
    pages::start_at(query, Column::CreatedAt, Column::Id, start)
}

/// Uses `IS NULL` and `IS NOT NULL`, as in the conditions of the partial indexes.
fn condition(filter: &Filter) -> Condition {
    let is_set = |column: Column, is_set| {
        if is_set {
            column.is_not_null()
        } else {
            column.is_null()
        }
    };
    let period = |column: Column, period: Period| {
        Condition::all()
            .add_option(period.from.map(|from| column.gte(Instant::from(from))))
            .add_option(period.until.map(|until| column.lt(Instant::from(until))))
    };
    let is_completed = |completed| is_set(Column::CompletedAt, completed);
    let is_cancelled = |cancelled| is_set(Column::CancelledAt, cancelled);
    let has_reference = |reference| Column::ExternalReference.eq(reference);
    Condition::all()
        .add(period(Column::CreatedAt, filter.created))
        .add(period(Column::DropoffBefore, filter.dropoff))
        .add_option(filter.is_completed.map(is_completed))
        .add_option(filter.is_cancelled.map(is_cancelled))
        .add_option(filter.state.map(has_state))
        .add_option(filter.external_reference.as_deref().map(has_reference))
}

/// As in the index by state, which has no delivery that is only created or was cancelled.
const STATE: &str = "CASE WHEN completed_at IS NOT NULL THEN 'completed' ELSE state END";

fn has_state(state: DeliveryState) -> Condition {
    match state {
        DeliveryState::Cancelled => Condition::all().add(Column::CancelledAt.is_not_null()),
        DeliveryState::Created => Condition::all()
            .add(Column::CompletedAt.is_null())
            .add(Column::CancelledAt.is_null())
            .add(Column::State.is_null()),
        state => {
            let is_in_index = Condition::any()
                .add(Column::CompletedAt.is_not_null())
                .add(Column::State.is_not_null());
            // A core of an earlier version cancels a delivery without changing its state.
            Condition::all()
                .add(Column::CancelledAt.is_null())
                .add(is_in_index)
                .add(Expr::cust(STATE).eq(state.as_str()))
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        courier::{ListKey, Place},
        id::CourierId,
        lifecycle::Command,
        task::{Actor, TaskKind},
    };
    use jiff::civil::date;
    use sea_orm::{DbBackend, Statement};
    use uuid::Uuid;

    use super::*;
    use crate::{Storage, fixture, pages::Cursor, stores};

    async fn plan(filter: &Filter) -> Vec<String> {
        let (_directory, storage) = fixture::sqlite().await;
        let start = Start::OlderThan(Cursor {
            created_at: Timestamp::UNIX_EPOCH,
            id: Uuid::now_v7(),
        });
        let query = query(StoreId::new(), filter, start).limit(31);
        let mut statement: Statement = query.build(DbBackend::Sqlite);
        statement.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);
        let rows = storage.reader().query_all_raw(statement).await.unwrap();
        rows.iter()
            .map(|row| row.try_get("", "detail").unwrap())
            .collect()
    }

    #[tokio::test]
    async fn a_filtered_page_is_found_by_an_index() {
        let bounded = Period {
            from: Some(Timestamp::UNIX_EPOCH),
            until: Some(Timestamp::MAX),
        };
        let all = Filter::default();
        for (filter, index) in [
            (
                all.clone(),
                "deliveries_by_creation (store_id=? AND created_at<?)",
            ),
            (
                Filter {
                    created: bounded,
                    ..all.clone()
                },
                "deliveries_by_creation (store_id=? AND created_at>? AND created_at<?)",
            ),
            (
                Filter {
                    is_completed: Some(false),
                    ..all.clone()
                },
                "deliveries_to_do (store_id=? AND created_at<?)",
            ),
            (
                Filter {
                    is_cancelled: Some(true),
                    ..all.clone()
                },
                "deliveries_cancelled (store_id=? AND created_at<?)",
            ),
            (
                Filter {
                    state: Some(DeliveryState::Created),
                    ..all.clone()
                },
                "deliveries_to_do (store_id=? AND created_at<?)",
            ),
            (
                Filter {
                    state: Some(DeliveryState::Picked),
                    ..all.clone()
                },
                "deliveries_by_state (store_id=? AND <expr>=? AND created_at<?)",
            ),
            (
                Filter {
                    state: Some(DeliveryState::Completed),
                    ..all.clone()
                },
                "deliveries_by_state (store_id=? AND <expr>=? AND created_at<?)",
            ),
            (
                Filter {
                    state: Some(DeliveryState::Cancelled),
                    ..all.clone()
                },
                "deliveries_cancelled (store_id=? AND created_at<?)",
            ),
            (
                Filter {
                    external_reference: Some("42".to_owned()),
                    ..all.clone()
                },
                "deliveries_by_external_reference (store_id=? AND external_reference=?)",
            ),
        ] {
            let plan = plan(&filter).await;

            assert!(plan[0].contains(index), "{filter:?}: {plan:?}");
            assert!(!plan.concat().contains("SCAN"), "{filter:?}: {plan:?}");
        }
    }

    /// The delivery, changed so that it is in a state.
    fn in_state(mut delivery: Delivery, state: DeliveryState) -> Delivery {
        use TaskKind::{Dropoff, Pickup};
        let commands = match state {
            DeliveryState::Created | DeliveryState::Assigned | DeliveryState::Cancelled => vec![],
            DeliveryState::Started => vec![(Pickup, Command::Start)],
            DeliveryState::Picked => vec![(Pickup, Command::Complete)],
            DeliveryState::InTransit => vec![(Dropoff, Command::Start)],
            DeliveryState::Dropped => vec![(Dropoff, Command::Complete)],
            DeliveryState::Failed => vec![(Pickup, Command::Fail("LOST".parse().unwrap()))],
            DeliveryState::Completed => {
                vec![(Dropoff, Command::Complete), (Pickup, Command::Complete)]
            }
        };
        for (kind, command) in commands {
            let applied = delivery.apply(kind, &command, Actor::Dispatch, Timestamp::UNIX_EPOCH);
            assert!(applied.unwrap().is_some(), "{command:?}");
        }
        if state == DeliveryState::Assigned {
            let list = ListKey {
                day: date(2026, 12, 1),
                courier_id: CourierId::new(),
            };
            delivery.dropoff.place = Some(Place { list, position: 0 });
        }
        if state == DeliveryState::Cancelled {
            let cancelled = delivery.cancel(Actor::Shop, Timestamp::UNIX_EPOCH);
            assert!(cancelled.unwrap().is_some());
        }
        assert_eq!(delivery.state(), state);
        delivery
    }

    async fn assert_each_is_found_by_its_state(storage: &Storage, deliveries: &[Delivery]) {
        for delivery in deliveries {
            let state = delivery.state();
            let filter = Filter {
                state: Some(state),
                ..Filter::default()
            };
            let store_id = delivery.store_id;
            let page = read(storage.reader(), store_id, &filter, Start::Newest, 30).await;
            let (found, has_more) = page.unwrap();
            let ids: Vec<_> = found.iter().map(|delivery| delivery.id).collect();
            assert_eq!(
                (&ids[..], has_more),
                (&[delivery.id][..], false),
                "{state:?}"
            );
        }
    }

    /// Also those that were in a state before states were stored.
    #[tokio::test]
    async fn deliveries_are_listed_by_state() {
        let migration = include_str!("../../../migrations/sql/0014_add_delivery_state.sql");
        let (_, fill) = migration.split_once("UPDATE").unwrap();
        let fill: &'static str = format!("UPDATE{fill}").leak();
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let store = fixture::store("A");
            stores::insert(storage.reader(), &store).await.unwrap();
            let mut all = Vec::new();
            for state in DeliveryState::ALL {
                let before = fixture::delivery(store.id, Timestamp::UNIX_EPOCH);
                let new = fixture::new_delivery(before.clone());
                assert!(storage.insert_delivery(new).await.unwrap());
                let after = in_state(before.clone(), state);
                let changes = deliveries::changes(&before, &after, &[]).unwrap();
                let write = storage.write(move |transaction| async move {
                    changes.make(&transaction).await?;
                    Ok::<_, Error>(())
                });
                write.await.unwrap();
                all.push(after);
            }

            assert_each_is_found_by_its_state(&storage, &all).await;
            fixture::execute(&storage, "UPDATE deliveries SET state = NULL").await;
            fixture::execute(&storage, fill).await;
            assert_each_is_found_by_its_state(&storage, &all).await;
        }
    }

    #[tokio::test]
    async fn a_page_with_a_delivery_without_its_tasks_fails() {
        let (_directory, storage) = fixture::sqlite().await;
        let store_id = StoreId::new();
        let delivery = fixture::delivery(store_id, Timestamp::UNIX_EPOCH);
        storage
            .insert_delivery(fixture::new_delivery(delivery))
            .await
            .unwrap();
        let first_page = async || {
            let filter = Filter::default();
            read(storage.reader(), store_id, &filter, Start::Newest, 30).await
        };
        assert_eq!(first_page().await.unwrap().0.len(), 1);

        storage
            .reader()
            .execute_unprepared("DELETE FROM tasks")
            .await
            .unwrap();

        let error = first_page().await.unwrap_err().to_string();
        assert!(error.contains("a delivery without both tasks"), "{error}");
    }
}
