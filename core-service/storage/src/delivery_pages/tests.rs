//! Pages against both databases, and the indexes that serve them.

use domain::{
    courier::{ListKey, Place},
    delivery::Booking,
    id::{CourierId, TimeSlotId},
    lifecycle::Command,
    task::{Actor, TaskKind},
};
use jiff::{SignedDuration, civil::date};
use sea_orm::{DbBackend, Statement};

use super::*;
use crate::{Storage, fixture, stores};

async fn plan(stores: Stores, filter: &Filter) -> Vec<String> {
    let mut plans = plans(stores, filter).await;
    assert_eq!(plans.len(), 1);
    plans.remove(0)
}

/// Of each part.
async fn plans(stores: Stores, filter: &Filter) -> Vec<Vec<String>> {
    let (_directory, storage) = fixture::sqlite().await;
    let start = Start::OlderThan(Cursor {
        created_at: Timestamp::UNIX_EPOCH,
        id: Uuid::now_v7(),
    });
    let mut plans = Vec::new();
    for part in parts(stores, filter) {
        let query = query(stores, filter, start).filter(part).limit(31);
        let mut statement: Statement = query.build(DbBackend::Sqlite);
        statement.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);
        let rows = storage.reader().query_all_raw(statement).await.unwrap();
        let details = rows.iter().map(|row| row.try_get("", "detail").unwrap());
        plans.push(details.collect());
    }
    plans
}

#[tokio::test]
async fn a_list_of_what_ended_long_ago_does_not_read_what_was_created_since() {
    let filter = Filter {
        dropoff: Period {
            from: None,
            until: Some(Timestamp::UNIX_EPOCH),
        },
        ..Filter::default()
    };

    let plans = plans(Stores::One(StoreId::new()), &filter).await;

    for (plan, index) in plans.iter().zip([
        "deliveries_by_creation (store_id=? AND created_at<?)",
        "deliveries_created_late (store_id=? AND created_at>? AND created_at<?)",
    ]) {
        assert!(plan[0].contains(index), "{plan:?}");
    }
    assert_eq!(plans.len(), 2);
}

#[tokio::test]
async fn deliveries_are_listed_by_the_end_of_the_dropoff_also_if_they_were_created_after_it() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (store_id, hours) = (StoreId::new(), SignedDuration::from_hours);
        let mut ids = Vec::new();
        for (created, end) in [(0, 2), (1, 9), (2, 1), (5, 3), (6, 7)] {
            let now = Timestamp::UNIX_EPOCH + hours(created);
            let mut delivery = fixture::delivery(store_id, now);
            delivery.dropoff.window.before = Timestamp::UNIX_EPOCH + hours(end);
            ids.push(delivery.id);
            let new = fixture::new_delivery(delivery);
            assert!(storage.insert_delivery(new).await.unwrap());
        }
        let filter = Filter {
            dropoff: Period {
                from: None,
                until: Some(Timestamp::UNIX_EPOCH + hours(4)),
            },
            ..Filter::default()
        };
        let page = async |start| {
            let stores = Stores::One(store_id);
            let page = read(storage.reader(), stores, &filter, start, 2).await;
            let (found, has_more) = page.unwrap();
            let last = found.last().map(|delivery| stores.cursor(delivery));
            let ids: Vec<_> = found.iter().map(|delivery| delivery.id).collect();
            ((ids, has_more), last.unwrap())
        };

        let (newest, last) = page(Start::Newest).await;
        assert_eq!(newest, (vec![ids[3], ids[2]], true));
        let (older, last) = page(Start::OlderThan(last)).await;
        assert_eq!(older, (vec![ids[0]], false));
        assert_eq!(page(Start::NewerThan(last)).await.0, (newest.0, false));
    }
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
                is_completed: Some(true),
                ..all.clone()
            },
            "deliveries_by_state (store_id=? AND <expr>=? AND created_at<?)",
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

#[tokio::test]
async fn a_store_lists_its_deliveries_without_bookings_and_positions_in_lists_of_couriers() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let mut before = fixture::delivery(StoreId::new(), Timestamp::UNIX_EPOCH);
        before.booking = Some(Booking {
            time_slot_id: TimeSlotId::new(),
            window: before.dropoff.window,
        });
        let new = fixture::new_delivery(before.clone());
        assert!(storage.insert_delivery(new).await.unwrap());
        let mut after = in_state(before.clone(), DeliveryState::Assigned);
        after.dropoff.place.as_mut().unwrap().position = 7;
        let changes = deliveries::changes(&before, &after, &[]).unwrap();
        let write = storage.write(move |transaction| async move {
            changes.make(&transaction).await?;
            Ok::<_, Error>(())
        });
        write.await.unwrap();
        let listed = async |stores| {
            let filter = Filter::default();
            let page = read(storage.reader(), stores, &filter, Start::Newest, 30).await;
            page.unwrap().0
        };

        assert_eq!(listed(Stores::One(after.store_id)).await, [after.clone()]);
        let own = listed(Stores::Own(after.store_id)).await;
        after.booking = None;
        after.dropoff.place.as_mut().unwrap().position = 0;
        assert_eq!(own, [after]);
    }
}

/// Also those that were in a state before states were stored.
#[tokio::test]
async fn deliveries_are_listed_by_state() {
    let migration =
        include_str!("../../../../migrations/sql/0018_add_states_of_open_deliveries.sql");
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
