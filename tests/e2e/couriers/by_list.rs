//! `ListTasks` in the order of couriers' lists, and of tasks with open incidents.

use proto::{
    AssignTasksRequest, CloseIncidentRequest, ListTasksRequest, ReportIncidentRequest, Task,
    list_tasks_request, task::State,
};

use super::{Desk, Order, TODAY, assert_violations, assignment, on, orders, tasks};
use crate::harness::Platform;

const YESTERDAY: &str = "2020-04-01";

fn by_list(request: ListTasksRequest) -> ListTasksRequest {
    ListTasksRequest {
        order: list_tasks_request::Order::List.into(),
        ..request
    }
}

fn with_incidents(day: &str) -> ListTasksRequest {
    ListTasksRequest {
        has_incidents: true,
        ..on(day)
    }
}

/// The tasks of a list, read in pages of a size.
async fn pages(desk: &Desk, request: &ListTasksRequest, size: u32) -> Vec<Task> {
    let mut request = ListTasksRequest {
        page_size: Some(size),
        ..request.clone()
    };
    let mut read = Vec::new();
    loop {
        let page = desk.list_tasks(request.clone()).await.unwrap();
        assert!(page.tasks.len() <= size as usize, "{request:?}");
        read.extend(page.tasks);
        if page.next_page_token.is_empty() {
            return read;
        }
        request.page_token = page.next_page_token;
    }
}

/// Fails unless a list has these tasks in this order, also in pages.
async fn assert_listed(desk: &Desk, request: &ListTasksRequest, expected: &[&String]) {
    for size in [1, 2, 3, 100] {
        let listed = pages(desk, request, size).await;
        let names: Vec<_> = listed.iter().map(|task| &task.name).collect();
        assert_eq!(names, expected, "{size} {request:?}");
    }
}

async fn report(desk: &Desk, task: &str) -> String {
    let request = ReportIncidentRequest {
        task: task.to_owned(),
        description: "The parcel is wet".to_owned(),
        ..Default::default()
    };
    desk.report_incident(request).await.unwrap().name
}

async fn close(desk: &Desk, incident: String) {
    let request = CloseIncidentRequest {
        name: incident,
        closed_with: "dried".to_owned(),
        ..Default::default()
    };
    desk.close_incident(request).await.unwrap();
}

on_both_databases! {
    async fn a_day_is_listed_by_courier_and_place_and_then_by_the_end_of_the_window(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, third, free]: [Order; 4] = orders(&client).await;
        let old = Order::on(&client, YESTERDAY).await;
        let of_yesterday = AssignTasksRequest {
            day: YESTERDAY.to_owned(),
            ..assignment(&[&old.pickup], "", &ben)
        };
        desk.assign_tasks(of_yesterday).await.unwrap();
        desk.assign(&[&second.pickup], "", &ben).await;
        desk.assign(&[&third.pickup, &first.pickup], "", &ada).await;
        let (of_ada, of_ben) = (desk.tasks_of(TODAY, &ada).await, desk.tasks_of(TODAY, &ben).await);
        assert_eq!(of_ada, tasks(&[&third, &first]));

        let all: Vec<_> = of_ada.iter().chain(&of_ben).chain([&free.pickup, &free.dropoff]).collect();
        assert_listed(&desk, &by_list(on(TODAY)), &all).await;
        let mut overdue = all.clone();
        // The pickup and the dropoff of yesterday ended first.
        overdue.splice(6..6, [&old.pickup, &old.dropoff]);
        let with_overdue = ListTasksRequest { include_overdue: true, ..on(TODAY) };
        assert_listed(&desk, &by_list(with_overdue), &overdue).await;
        let one = ListTasksRequest { courier: ben.clone(), ..on(TODAY) };
        assert_listed(&desk, &by_list(one), &of_ben.iter().collect::<Vec<_>>()).await;
        let unassigned = ListTasksRequest { unassigned: true, ..on(TODAY) };
        assert_listed(&desk, &by_list(unassigned), &all[6..]).await;
        desk.start(&first.pickup).await;
        let started = ListTasksRequest { states: vec![State::Doing.into()], ..on(TODAY) };
        assert_listed(&desk, &by_list(started), &[&first.pickup]).await;

        // The same messages in another order.
        let mut by_end = pages(&desk, &on(TODAY), 100).await;
        let mut listed = pages(&desk, &by_list(on(TODAY)), 100).await;
        for tasks in [&mut by_end, &mut listed] {
            tasks.sort_by(|one, other| one.name.cmp(&other.name));
        }
        assert_eq!(by_end, listed);
    }

    async fn a_token_is_of_its_order(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        let first = ListTasksRequest { page_size: Some(1), ..by_list(on(TODAY)) };
        let page_token = desk.list_tasks(first).await.unwrap().next_page_token;

        let by_end = ListTasksRequest { page_token, ..on(TODAY) };
        assert_violations(&desk.list_tasks(by_end).await.unwrap_err(), &["page_token"]);
        let unknown = ListTasksRequest { order: 7, ..on(TODAY) };
        assert_violations(&desk.list_tasks(unknown).await.unwrap_err(), &["order"]);
    }

    async fn the_tasks_with_open_incidents_are_listed_and_watched(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second, free]: [Order; 3] = orders(&client).await;
        let old = Order::on(&client, YESTERDAY).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        assert_listed(&desk, &with_incidents(TODAY), &[]).await;

        for task in [&first.dropoff, &free.pickup, &old.pickup] {
            report(&desk, task).await;
        }
        let done = report(&desk, &second.pickup).await;
        desk.complete(&second.pickup).await;

        let mut by_end = vec![&free.pickup, &second.pickup];
        by_end.sort();
        by_end.push(&first.dropoff);
        assert_listed(&desk, &with_incidents(TODAY), &by_end).await;
        let in_order = [&first.dropoff, &second.pickup, &free.pickup];
        assert_listed(&desk, &by_list(with_incidents(TODAY)), &in_order).await;
        let overdue = ListTasksRequest { include_overdue: true, ..with_incidents(TODAY) };
        by_end.insert(0, &old.pickup);
        assert_listed(&desk, &overdue, &by_end).await;
        assert_listed(&desk, &with_incidents(YESTERDAY), &[&old.pickup]).await;
        let todo = ListTasksRequest { states: vec![State::Todo.into()], ..with_incidents(TODAY) };
        assert_listed(&desk, &todo, &[&free.pickup, &first.dropoff]).await;

        let arguments = ["tasks", "list", "--incidents", "--by-list"];
        let printed = platform.run_delivery_json(&arguments).await;
        let printed: Vec<_> = printed["tasks"].as_array().unwrap().iter().map(|task| task["iri"].clone()).collect();
        assert_eq!(printed, in_order.map(|task| proto::iri::of(task)));

        let list = with_incidents(TODAY);
        let position = desk.list_tasks(list.clone()).await.unwrap().position;
        let mut changes = desk.watch(Some(position), &list).await.unwrap();
        let incident = report(&desk, &free.dropoff).await;
        let shown = loop {
            let change = changes.message().await.unwrap().unwrap();
            if let Some(task) = change.tasks.into_iter().find(|task| task.name == free.dropoff) {
                break task;
            }
        };
        assert!(shown.has_incidents);
        let listed = pages(&desk, &list, 100).await;
        assert!(listed.contains(&shown), "{listed:?}");
        close(&desk, incident).await;
        while !changes.message().await.unwrap().unwrap().left.contains(&free.dropoff) {}
        close(&desk, done).await;
        assert_listed(&desk, &list, &[&free.pickup, &first.dropoff]).await;
    }
}
