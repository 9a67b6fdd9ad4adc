//! Pages of the deliveries of a store, and of all stores.

use std::cmp::Reverse;

use domain::{delivery::Delivery, id::StoreId, lifecycle::DeliveryState};
use sea_orm::{Order, Value, sea_query::ExprTrait as _};

use super::{
    deliveries,
    entity::{
        delivery::{self, Column},
        instant::Instant,
        store,
    },
    pages::{self, Cursor, Start},
};
use crate::prelude::*;

/// Whose deliveries a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Newest first.
    One(StoreId),
    /// The latest end of the dropoff's window first, without those that were erased.
    All,
}

impl Stores {
    /// The position of a delivery in a list.
    pub fn cursor(self, delivery: &Delivery) -> Cursor {
        Cursor {
            created_at: match self {
                Self::One(_) => delivery.created_at,
                // By which this list is ordered.
                Self::All => delivery.dropoff.window.before,
            },
            id: delivery.id.0,
        }
    }
}

/// Filters of a list. An absent filter matches all deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub created: Period,
    /// Of the dropoff's `before`.
    pub dropoff: Period,
    /// Of the dropoff's `before`, too.
    pub day: Period,
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

/// A page of deliveries, in the order of the list, and whether more follow in the direction of
/// reading.
pub async fn read(
    connection: &impl ConnectionTrait,
    stores: Stores,
    filter: &Filter,
    start: Start,
    size: u32,
) -> Result<(Vec<Delivery>, bool), Error> {
    let page = query(stores, filter, start).limit(pages::limit(size));
    let mut found = deliveries::read(connection, page).await?;
    found.sort_unstable_by_key(|delivery| {
        let cursor = stores.cursor(delivery);
        Reverse((cursor.created_at, cursor.id))
    });
    if matches!(start, Start::NewerThan(_)) {
        found.reverse();
    }
    Ok(pages::cut(found, start, size))
}

/// The query for the rows from a start, in the direction of reading.
fn query(stores: Stores, filter: &Filter, start: Start) -> Select<delivery::Entity> {
    let query = delivery::Entity::find().filter(condition(filter));
    match stores {
        Stores::One(store_id) => {
            let query = query.filter(Column::StoreId.eq(store_id.0));
            pages::start_at(query, Column::CreatedAt, Column::Id, start)
        }
        Stores::All => {
            let query = query.filter(Column::ErasedAt.is_null());
            start_at_dropoff(of_any_store(query, filter), start)
        }
    }
}

/// The index of references begins with the store.
fn of_any_store(query: Select<delivery::Entity>, filter: &Filter) -> Select<delivery::Entity> {
    if filter.external_reference.is_none() {
        return query;
    }
    let stores = Query::select()
        .column(store::Column::Id)
        .from(store::Entity)
        .take();
    query.filter(Column::StoreId.in_subquery(stores))
}

/// Like [`pages::start_at`], by a comparison of rows: many deliveries of a day end at the same instant, and none of
/// those before the start is read.
fn start_at_dropoff(query: Select<delivery::Entity>, start: Start) -> Select<delivery::Entity> {
    let key = [Column::DropoffBefore, Column::Id];
    let columns = || Expr::tuple(key.map(Expr::col));
    let position = |cursor: Cursor| {
        let values: [Value; 2] = [Instant::from(cursor.created_at).into(), cursor.id.into()];
        Expr::tuple(values.map(Expr::value))
    };
    let (query, order) = match start {
        Start::Newest => (query, Order::Desc),
        Start::OlderThan(cursor) => (query.filter(columns().lt(position(cursor))), Order::Desc),
        Start::NewerThan(cursor) => (query.filter(columns().gt(position(cursor))), Order::Asc),
    };
    key.into_iter()
        .fold(query, |query, column| query.order_by(column, order.clone()))
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
        .add(period(Column::DropoffBefore, filter.day))
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
    use jiff::{SignedDuration, civil::date};
    use sea_orm::{DbBackend, Statement};

    use super::*;
    use crate::{Storage, fixture, stores};

    async fn plan(stores: Stores, filter: &Filter) -> Vec<String> {
        let (_directory, storage) = fixture::sqlite().await;
        let start = Start::OlderThan(Cursor {
            created_at: Timestamp::UNIX_EPOCH,
            id: Uuid::now_v7(),
        });
        let query = query(stores, filter, start).limit(31);
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
            let plan = plan(Stores::One(StoreId::new()), &filter).await;

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
            let stores = Stores::One(delivery.store_id);
            let page = read(storage.reader(), stores, &filter, Start::Newest, 30).await;
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
        let migration =
            include_str!("../../../migrations/sql/0018_add_states_of_open_deliveries.sql");
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
    async fn a_page_of_all_stores_is_found_by_an_index() {
        let day = Period {
            from: Some(Timestamp::UNIX_EPOCH),
            until: Some(Timestamp::MAX),
        };
        let all = Filter::default();
        for (filter, index) in [
            (all.clone(), "deliveries_by_day ((dropoff_before,id)<(?,?)"),
            (
                Filter {
                    day,
                    is_completed: Some(false),
                    ..all.clone()
                },
                "deliveries_by_day (dropoff_before>? AND ",
            ),
            (
                Filter {
                    external_reference: Some("42".to_owned()),
                    ..all.clone()
                },
                "deliveries_by_external_reference (store_id=? AND external_reference=?)",
            ),
        ] {
            let plan = plan(Stores::All, &filter).await;

            assert!(plan[0].contains(index), "{filter:?}: {plan:?}");
            let found = plan.concat();
            assert!(!found.contains("SCAN deliveries"), "{filter:?}: {plan:?}");
        }
    }

    #[tokio::test]
    async fn pages_of_all_stores_are_in_the_order_of_dropoffs_in_both_directions() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let hours = SignedDuration::from_hours;
            let mut expected = Vec::new();
            for (name, ends) in [("A", [3, 1, 2]), ("B", [2, 4, 2])] {
                let store = fixture::store(name);
                stores::insert(storage.reader(), &store).await.unwrap();
                for end in ends {
                    let mut delivery = fixture::delivery(store.id, Timestamp::UNIX_EPOCH);
                    delivery.dropoff.window.before = Timestamp::UNIX_EPOCH + hours(end);
                    expected.push((end, delivery.id));
                    let new = fixture::new_delivery(delivery);
                    assert!(storage.insert_delivery(new).await.unwrap());
                }
            }
            expected.sort_unstable_by(|first, second| second.cmp(first));
            let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();

            let filter = Filter::default();
            let page = async |start| {
                let page = read(storage.reader(), Stores::All, &filter, start, 2).await;
                page.unwrap()
            };
            let (mut start, mut pages) = (Start::Newest, Vec::new());
            loop {
                let (deliveries, has_more) = page(start).await;
                pages.push(deliveries);
                let last = pages.last().unwrap().last().unwrap();
                start = Start::OlderThan(Stores::All.cursor(last));
                if !has_more {
                    break;
                }
            }
            let ids = pages.concat().into_iter().map(|delivery| delivery.id);
            assert_eq!(ids.collect::<Vec<_>>(), expected);
            let last = Start::NewerThan(Stores::All.cursor(&pages[2][0]));
            assert_eq!(page(last).await, (pages[1].clone(), true));
            let day = Period {
                from: Some(Timestamp::UNIX_EPOCH + hours(2)),
                until: Some(Timestamp::UNIX_EPOCH + hours(4)),
            };
            let filter = Filter {
                day,
                ..Filter::default()
            };
            let of_day = read(storage.reader(), Stores::All, &filter, Start::Newest, 9).await;
            let ids = of_day.unwrap().0.into_iter().map(|delivery| delivery.id);
            assert_eq!(ids.collect::<Vec<_>>(), expected[1..5]);
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
            let stores = Stores::One(store_id);
            read(storage.reader(), stores, &filter, Start::Newest, 30).await
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
