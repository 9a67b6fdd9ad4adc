use domain::{
    courier::{ListKey, Place},
    delivery::Delivery,
    lifecycle::Command,
    task::{Actor, TaskKind, TaskState},
};
use jiff::SignedDuration;
use sea_orm::Statement;

use super::{statements::LONGEST, *};
use crate::{Storage, deliveries, fixture, stores};

fn hours(hours: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
}

/// All tasks of the second day since 1970.
fn all() -> Filter {
    Filter {
        states: StateName::ALL.to_vec(),
        day: TimeWindow {
            after: hours(24),
            before: hours(48),
        },
        include_overdue: false,
        list_day: Date::constant(1970, 1, 2),
        courier: CourierFilter::Any,
        store_id: None,
        has_incidents: false,
    }
}

/// A delivery whose tasks have windows of these hours.
fn delivery(store_id: StoreId, windows: [[i64; 2]; 2]) -> Delivery {
    let mut delivery = fixture::delivery(store_id, Timestamp::UNIX_EPOCH);
    let [pickup, dropoff] = windows.map(|[after, before]| TimeWindow {
        after: hours(after),
        before: hours(before),
    });
    (delivery.pickup.window, delivery.dropoff.window) = (pickup, dropoff);
    delivery
}

async fn insert(storage: &Storage, delivery: &Delivery) {
    let new = fixture::new_delivery(delivery.clone());
    assert!(storage.insert_delivery(new).await.unwrap());
}

async fn fail(storage: &Storage, before: &Delivery, kind: TaskKind) {
    let mut failed = before.clone();
    let command = Command::Fail("OTHER".parse().unwrap());
    let applied = failed.apply(kind, &command, Actor::Dispatch, hours(1));
    assert!(applied.unwrap().is_some());
    change(storage, before, &failed).await;
}

async fn change(storage: &Storage, before: &Delivery, after: &Delivery) {
    let changes = deliveries::changes(before, after, &[]).unwrap();
    let write = storage.write(move |transaction| async move {
        changes.make(&transaction).await?;
        Ok::<_, Error>(())
    });
    write.await.unwrap();
}

/// The hours of the listed windows, read in pages.
async fn list(storage: &Storage, filter: &Filter, size: u32) -> Vec<[i64; 2]> {
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = read(storage.reader(), filter, Order::End, after, size).await;
        let (tasks, has_more) = page.unwrap();
        let hours = |instant: Timestamp| instant.as_second() / 3600;
        let windows = tasks.iter().map(|listed| listed.task.window);
        listed.extend(windows.map(|window| [hours(window.after), hours(window.before)]));
        if !has_more {
            return listed;
        }
        let last = tasks.last();
        after = last.map(|last| last.position(filter, Order::End));
    }
}

/// Fails unless the tasks that a filter has of these deliveries are those that it lists, in each order and in pages.
async fn assert_lists_what_it_has(storage: &Storage, filter: &Filter, of: &[&Delivery]) {
    let keys: Vec<_> = of.iter().map(|of| (of.store_id, of.id)).collect();
    let mut expected = of_deliveries(storage.reader(), &keys).await.unwrap();
    assert_eq!(expected.len(), 2 * of.len());
    expected.retain(|listed| filter.has(listed));
    let ids = |listed: &ListedTask| (listed.task.id, listed.other.id);
    for order in [Order::End, Order::List] {
        expected.sort_by_key(|listed| match listed.position(filter, order) {
            Position::Place { courier_id, place } => (0, courier_id.0, place, None, Uuid::nil()),
            Position::End(end) => (1, Uuid::nil(), 0, Some(end.created_at), end.id),
        });
        let expected: Vec<_> = expected.iter().map(ids).collect();
        for size in [2, 100] {
            let (mut listed, mut after) = (Vec::new(), None);
            loop {
                let page = read(storage.reader(), filter, order, after, size).await;
                let (tasks, has_more) = page.unwrap();
                listed.extend(tasks.iter().map(ids));
                if !has_more {
                    break;
                }
                let last = tasks.last();
                after = last.map(|last| last.position(filter, order));
            }
            assert_eq!(listed, expected, "{order:?} {size} {filter:?}");
        }
    }
}

#[tokio::test]
async fn the_tasks_that_touch_a_day_are_listed_by_the_end_of_their_windows() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let [shop, other] = [fixture::store("A"), fixture::store("B")];
        for store in [&shop, &other] {
            stores::insert(storage.reader(), store).await.unwrap();
        }
        let touching = delivery(shop.id, [[30, 31], [40, 60]]);
        // The first ends with the day before, the second begins with the next one.
        let outside = delivery(shop.id, [[20, 24], [48, 49]]);
        let long = delivery(shop.id, [[0, 25], [0, 600]]);
        let overdue = delivery(other.id, [[1, 2], [30, 32]]);
        let deliveries = [&touching, &outside, &long, &overdue];
        for delivery in deliveries {
            insert(&storage, delivery).await;
        }
        fail(&storage, &overdue, TaskKind::Pickup).await;

        let day = [[0, 25], [30, 31], [30, 32], [40, 60], [0, 600]];
        for size in [1, 2, 100] {
            assert_eq!(list(&storage, &all(), size).await, day, "{size}");
        }
        let with_overdue = Filter {
            include_overdue: true,
            ..all()
        };
        let expected = [&[[1, 2], [20, 24]], &day[..]].concat();
        assert_eq!(list(&storage, &with_overdue, 2).await, expected);
        let failed = Filter {
            states: vec![StateName::Failed],
            ..with_overdue.clone()
        };
        assert_eq!(list(&storage, &failed, 2).await, [[1, 2]]);
        let of_store = |store: &Store| Filter {
            store_id: Some(store.id),
            ..with_overdue.clone()
        };
        assert_eq!(
            list(&storage, &of_store(&other), 1).await,
            [[1, 2], [30, 32]]
        );
        for filter in [&all(), &with_overdue, &failed, &of_store(&shop)] {
            for courier in [CourierFilter::Any, CourierFilter::None] {
                let filter = Filter {
                    courier,
                    ..filter.clone()
                };
                assert_lists_what_it_has(&storage, &filter, &deliveries).await;
            }
        }
        let page = read(storage.reader(), &with_overdue, Order::End, None, 9);
        let (tasks, _) = page.await.unwrap();
        let dropoff = tasks
            .iter()
            .find(|listed| listed.task.id == overdue.dropoff.id);
        let dropoff = dropoff.unwrap();
        assert_eq!(
            (dropoff.other.id, &dropoff.store.id),
            (overdue.pickup.id, &other.id)
        );
        assert!(dropoff.task.is_blocked_by(&dropoff.other));
    }
}

/// Deliveries in lists of the day and of another, and in none: with open incidents, and without; in each state.
async fn worked(storage: &Storage, couriers: [CourierId; 2]) -> Vec<Delivery> {
    let shop = fixture::store("A");
    stores::insert(storage.reader(), &shop).await.unwrap();
    let states = [
        TaskState::Todo,
        TaskState::Doing,
        TaskState::Done,
        TaskState::Failed("OTHER".parse().unwrap()),
        TaskState::Cancelled,
    ];
    let days = [None, Some(all().list_day), all().list_day.tomorrow().ok()];
    let mut deliveries = Vec::new();
    for (number, state) in (0..).zip(states) {
        for day in days {
            let windows = [[1, 2 + i64::from(number)], [26, 30 - i64::from(number)]];
            let before = delivery(shop.id, windows);
            insert(storage, &before).await;
            let mut after = before.clone();
            for (task, position) in [(&mut after.pickup, 2), (&mut after.dropoff, 1)] {
                task.state = state.clone();
                task.place = day.map(|day| Place {
                    list: ListKey {
                        day,
                        courier_id: couriers[usize::from(number % 2 == 0)],
                    },
                    position: position + 2 * number,
                });
            }
            after.dropoff.open_incidents = 2;
            // Some of an ended window.
            after.pickup.open_incidents = number % 2;
            change(storage, &before, &after).await;
            deliveries.push(after);
        }
    }
    deliveries
}

#[tokio::test]
async fn a_list_has_in_each_order_what_its_filter_has() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let couriers = [CourierId::new(), CourierId::new()];
        let deliveries = worked(&storage, couriers).await;
        let deliveries: Vec<_> = deliveries.iter().collect();
        let open = vec![StateName::Doing, StateName::Failed];
        for states in [StateName::ALL.to_vec(), open, vec![StateName::Done]] {
            for courier in [
                CourierFilter::Any,
                CourierFilter::None,
                CourierFilter::One(couriers[0]),
            ] {
                for [include_overdue, has_incidents] in
                    [[false, false], [false, true], [true, false], [true, true]]
                {
                    let filter = Filter {
                        states: states.clone(),
                        include_overdue,
                        courier,
                        has_incidents,
                        ..all()
                    };
                    assert_lists_what_it_has(&storage, &filter, &deliveries).await;
                }
            }
        }
    }
}

/// The plan of a page that is read in SQLite.
async fn plan(statement: Option<(String, Vec<Value>)>) -> String {
    let (_directory, storage) = fixture::sqlite().await;
    let (sql, values) = statement.unwrap();
    let sql = format!("EXPLAIN QUERY PLAN {sql}");
    let statement = Statement::from_sql_and_values(DbBackend::Sqlite, sql, values);
    let rows = storage.reader().query_all_raw(statement).await.unwrap();
    let details = rows.iter().map(|row| row.try_get("", "detail").unwrap());
    let plan = details.collect::<Vec<String>>().join("\n");
    assert!(
        !plan.contains("SCAN tasks") && !plan.contains("SCAN other"),
        "{plan}"
    );
    plan
}

fn after() -> Position {
    Position::End(Cursor {
        created_at: hours(30),
        id: Uuid::nil(),
    })
}

#[tokio::test]
async fn each_state_of_a_list_is_found_by_an_index() {
    let of_store = Filter {
        store_id: Some(StoreId::new()),
        ..all()
    };
    for filter in [all(), of_store] {
        for order in [Order::End, Order::List] {
            let plan = plan(statements::by_end(&filter, order, Some(after()), 31)).await;
            let parts = StateName::ALL.len() * (LONGEST.len() + 1);
            let index = "tasks_by_end (<expr>=? AND <expr>=? AND (before,id)>(?,?)";
            assert_eq!(plan.matches(index).count(), parts, "{plan}");
        }
    }
}

#[tokio::test]
async fn lists_and_incidents_are_found_by_an_index() {
    let with_incidents = Filter {
        has_incidents: true,
        include_overdue: true,
        ..all()
    };

    let by_end = plan(statements::by_end(
        &with_incidents,
        Order::End,
        Some(after()),
        31,
    ))
    .await;
    let in_lists = plan(statements::in_lists(&all(), None, 31)).await;
    let incidents_in_lists = plan(statements::in_lists(&with_incidents, None, 31)).await;

    let index = "tasks_with_incidents (<expr>=?";
    assert_eq!(by_end.matches(index).count(), 3, "{by_end}");
    assert!(
        in_lists.contains("tasks_of_lists (list_day=?"),
        "{in_lists}"
    );
    assert!(incidents_in_lists.contains(index), "{incidents_in_lists}");
}
