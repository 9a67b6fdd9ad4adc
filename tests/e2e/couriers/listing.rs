//! `ListTasks`: the tasks in the lists of a day, and those in none whose windows touch it.

use proto::{AssignTasksRequest, ListTasksRequest, Task, task::State};

use super::{Desk, Order, TODAY, TOMORROW, assignment, tasks};
use crate::harness::{ApiClient, Platform};

const YESTERDAY: &str = "2020-04-01";

/// Deliveries whose windows and lists are on several days.
struct Days {
    ada: String,
    ben: String,
    /// Of today, in Ada's list of today.
    planned: Order,
    /// Of today, in Ada's list of tomorrow.
    late: Order,
    /// Of tomorrow, in Ada's list of today.
    early: Order,
    /// Of today and tomorrow, in no list.
    free: Order,
    free_tomorrow: Order,
    /// Of yesterday: in Ada's lists of yesterday, of today, of tomorrow, in no list, and done.
    old: Order,
    old_today: Order,
    old_tomorrow: Order,
    old_free: Order,
    old_done: Order,
}

impl Days {
    async fn plan(client: &ApiClient, desk: &Desk) -> Self {
        let days = Self {
            ada: desk.courier("Ada").await,
            ben: desk.courier("Ben").await,
            planned: Order::on(client, TODAY).await,
            late: Order::on(client, TODAY).await,
            early: Order::on(client, TOMORROW).await,
            free: Order::on(client, TODAY).await,
            free_tomorrow: Order::on(client, TOMORROW).await,
            old: Order::on(client, YESTERDAY).await,
            old_today: Order::on(client, YESTERDAY).await,
            old_tomorrow: Order::on(client, YESTERDAY).await,
            old_free: Order::on(client, YESTERDAY).await,
            old_done: Order::on(client, YESTERDAY).await,
        };
        for (day, orders) in [
            (TODAY, vec![&days.early, &days.old_today, &days.planned]),
            (TOMORROW, vec![&days.late, &days.old_tomorrow]),
            (YESTERDAY, vec![&days.old, &days.old_done]),
        ] {
            let request = AssignTasksRequest {
                day: day.to_owned(),
                ..assignment(&tasks(&orders), "", &days.ada)
            };
            let assigned = desk.assign_tasks(request).await.unwrap();
            assert_eq!(assigned.conflicts, [""; 0]);
        }
        for task in tasks(&[&days.old_done]) {
            desk.complete(&task).await;
        }
        days
    }
}

fn on(day: &str) -> ListTasksRequest {
    ListTasksRequest {
        day: day.to_owned(),
        page_size: Some(100),
        ..Default::default()
    }
}

/// The tasks of a list that has one page.
async fn list(desk: &Desk, request: ListTasksRequest) -> Vec<Task> {
    let page = desk.list_tasks(request).await.unwrap();
    assert_eq!(page.next_page_token, "");
    page.tasks
}

async fn names(desk: &Desk, request: ListTasksRequest) -> Vec<String> {
    let tasks = list(desk, request).await;
    tasks.into_iter().map(|task| task.name).collect()
}

/// The tasks of deliveries by the end of the window, then by id.
async fn sorted(desk: &Desk, orders: &[&Order]) -> Vec<String> {
    let mut keys = Vec::new();
    for task in tasks(orders) {
        let before = desk.task(&task).await.before.unwrap();
        keys.push((before.seconds, task));
    }
    keys.sort();
    keys.into_iter().map(|(_, task)| task).collect()
}

on_both_databases! {
    async fn a_day_has_the_tasks_in_its_lists_and_those_in_none_whose_windows_touch_it(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let days = Days::plan(&client, &desk).await;
        let Days { planned, late, early, free, free_tomorrow, old_done, .. } = &days;
        let Days { old, old_today, old_tomorrow, old_free, .. } = &days;

        for (day, orders) in [
            (TODAY, vec![planned, early, free, old_today]),
            (TOMORROW, vec![late, free_tomorrow, old_tomorrow]),
            (YESTERDAY, vec![old, old_free, old_done]),
            ("2020-04-04", vec![]),
        ] {
            assert_eq!(names(&desk, on(day)).await, sorted(&desk, &orders).await, "{day}");
        }
        assert_eq!(names(&desk, on("")).await, names(&desk, on(TODAY)).await);
    }

    async fn overdue_tasks_are_listed_with_or_without_a_courier(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let days = Days::plan(&client, &desk).await;
        let Days { planned, late, early, free, free_tomorrow, old, old_today, old_tomorrow, old_free, .. } = &days;
        let overdue = |day: &str| ListTasksRequest { include_overdue: true, ..on(day) };

        // Each once, also if it is in the day's list too.
        let orders = [planned, early, free, old, old_today, old_tomorrow, old_free];
        assert_eq!(names(&desk, overdue(TODAY)).await, sorted(&desk, &orders).await);
        let orders = [late, free_tomorrow, planned, free, old, old_today, old_tomorrow, old_free];
        assert_eq!(names(&desk, overdue(TOMORROW)).await, sorted(&desk, &orders).await);
        let unassigned = ListTasksRequest { unassigned: true, ..overdue(TODAY) };
        assert_eq!(names(&desk, unassigned).await, sorted(&desk, &[free, old_free]).await);
    }

    async fn a_day_is_filtered_by_courier_and_by_state(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let days = Days::plan(&client, &desk).await;
        let Days { ada, ben, planned, late, early, free, free_tomorrow, old_today, old_tomorrow, .. } = &days;
        desk.start(&planned.dropoff).await;
        desk.start(&free.pickup).await;
        let unassigned = |day: &str| ListTasksRequest { unassigned: true, ..on(day) };
        let of = |courier: &str, day: &str| ListTasksRequest { courier: courier.to_owned(), ..on(day) };

        for (request, orders) in [
            (unassigned(TODAY), vec![free]),
            (unassigned(TOMORROW), vec![free_tomorrow]),
            (of(ada, TODAY), vec![planned, early, old_today]),
            (of(ada, TOMORROW), vec![late, old_tomorrow]),
            (of(ada, "2020-04-04"), vec![]),
            (of(ben, TODAY), vec![]),
        ] {
            assert_eq!(names(&desk, request.clone()).await, sorted(&desk, &orders).await, "{request:?}");
        }
        for (request, expected) in [
            (on(TODAY), vec![&*free.pickup, &*planned.dropoff]),
            (unassigned(TODAY), vec![&*free.pickup]),
            (of(ada, TODAY), vec![&*planned.dropoff]),
            (of(ada, TOMORROW), vec![]),
        ] {
            let request = ListTasksRequest { states: vec![State::Doing.into()], ..request };
            assert_eq!(names(&desk, request.clone()).await, expected, "{request:?}");
        }
        // Who has no courier any more is unassigned, on the days of its window.
        desk.assign(&[&late.pickup], ada, "").await;
        assert_eq!(names(&desk, unassigned(TODAY)).await, sorted(&desk, &[free, late]).await);
        assert_eq!(names(&desk, of(ada, TOMORROW)).await, sorted(&desk, &[old_tomorrow]).await);
    }

    async fn pages_of_one_task_have_neither_gap_nor_repetition(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let days = Days::plan(&client, &desk).await;
        let of_ada = ListTasksRequest { courier: days.ada.clone(), ..on(TODAY) };

        for request in [
            on(TODAY),
            on(TOMORROW),
            on(YESTERDAY),
            ListTasksRequest { include_overdue: true, ..on(TODAY) },
            ListTasksRequest { include_overdue: true, ..on(TOMORROW) },
            ListTasksRequest { unassigned: true, ..on(TODAY) },
            ListTasksRequest { unassigned: true, include_overdue: true, ..on(TODAY) },
            ListTasksRequest { include_overdue: true, ..of_ada.clone() },
            ListTasksRequest { states: vec![State::Todo.into()], ..on(YESTERDAY) },
            of_ada,
        ] {
            let whole = names(&desk, request.clone()).await;
            assert!(whole.len() > 1, "{request:?}");
            for page_size in [1, 3] {
                let mut next = ListTasksRequest { page_size: Some(page_size), ..request.clone() };
                let mut read = Vec::new();
                loop {
                    let page = desk.list_tasks(next.clone()).await.unwrap();
                    assert!(page.tasks.len() <= page_size as usize, "{next:?}");
                    read.extend(page.tasks.into_iter().map(|task| task.name));
                    if page.next_page_token.is_empty() {
                        break;
                    }
                    assert!(read.len() < whole.len(), "{next:?}");
                    next.page_token = page.next_page_token;
                }
                assert_eq!(read, whole, "{page_size} {request:?}");
            }
        }
    }

    async fn a_listed_task_has_its_courier_and_its_place(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let operator = platform.operator().await;
        let program = operator.create_client("", &["tasks:all"]).await;
        let program = Desk::with(platform, &program, "tasks:all").await;
        let days = Days::plan(&client, &desk).await;

        let listed = list(&desk, on(TODAY)).await;

        for order in [&days.planned, &days.early, &days.free, &days.old_today] {
            for (task, other) in [(&order.pickup, &order.dropoff), (&order.dropoff, &order.pickup)] {
                let found = listed.iter().find(|found| found.name == *task).unwrap();
                let expected = Task {
                    other_task: other.clone(),
                    other_state: State::Todo.into(),
                    store: platform.store.clone(),
                    store_display_name: "Demo shop".to_owned(),
                    ..desk.task(task).await
                };
                assert_eq!(*found, expected);
            }
        }
        assert_eq!(list(&program, on(TODAY)).await, listed);
    }
}
