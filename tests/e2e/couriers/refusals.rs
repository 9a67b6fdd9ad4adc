//! What `SetCourierLists` refuses: then no list changes.

use jiff::SignedDuration;
use proto::{CourierList, ListCourierListsRequest, ListTasksRequest, SetCourierListsRequest};
use tonic::Status;
use tonic_types::StatusExt as _;

use super::{
    Desk, Order, TODAY, TOMORROW, assert_refused, assert_unknown, assert_violations, assignment,
    orders, place, tasks, with_tasks,
};
use crate::harness::{Platform, UNKNOWN_ID};

/// Fails unless the refusal names these lists by their couriers, and not the others.
#[track_caller]
fn assert_changed(refused: &Status, named: &[&str], others: &[&str]) {
    assert_refused(refused, "LISTS_CHANGED");
    let message = refused.message();
    for (couriers, is_named) in [(named, true), (others, false)] {
        for courier in couriers {
            assert_eq!(message.contains(courier), is_named, "{message}");
        }
    }
}

on_both_databases! {
    /// "All or none; else `lists_changed`."
    async fn no_list_changes_if_one_is_not_as_its_etag_says(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, third]: [Order; 3] = orders(&client).await;
        desk.assign(&[&first.pickup], "", &ada).await;
        desk.assign(&[&second.pickup], "", &ben).await;
        let known = [desk.list(TODAY, &ada).await, desk.list(TODAY, &ben).await];
        let empty_etag = desk.lists(TODAY).await.empty_etag;
        desk.assign(&[&third.pickup], "", &ben).await;
        let before = desk.lists(TODAY).await;

        let swapped = [with_tasks(&known[0], &known[1].tasks), with_tasks(&known[1], &known[0].tasks)];
        for lists in [swapped.to_vec(), swapped.iter().rev().cloned().collect()] {
            let refused = desk.set(TODAY, lists).await.unwrap_err();
            assert_changed(&refused, &[&ben], &[&ada]);
        }
        // Also if it asks for what the list had, for nothing, or for a list that was empty; not for what it has.
        let present = desk.list(TODAY, &ben).await;
        let repeated = with_tasks(&known[1], &present.tasks);
        assert_eq!(desk.set(TODAY, vec![repeated]).await.unwrap(), [present]);
        for tasks in [&known[1].tasks, &Vec::new()] {
            let refused = desk.set(TODAY, vec![with_tasks(&known[1], tasks)]).await.unwrap_err();
            assert_changed(&refused, &[&ben], &[&ada]);
        }
        let empty = CourierList { etag: empty_etag, ..with_tasks(&known[0], &Vec::new()) };
        let refused = desk.set(TODAY, vec![empty]).await.unwrap_err();
        assert_changed(&refused, &[&ada], &[&ben]);
        let crossed = CourierList { etag: known[0].etag.clone(), ..known[1].clone() };
        let refused = desk.set(TODAY, vec![crossed]).await.unwrap_err();
        assert_changed(&refused, &[&ben], &[&ada]);

        assert_eq!(desk.lists(TODAY).await, before);
        desk.assign(&[&third.pickup], &ben, "").await;
        // The lists are as they were.
        desk.set(TODAY, swapped.to_vec()).await.unwrap();
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&second]));
        assert_eq!(desk.tasks_of(TODAY, &ben).await, tasks(&[&first]));
    }

    async fn a_refusal_says_who_changed_the_lists_last(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let other = Desk::authorized(platform).await;
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&first.pickup], "", &ada).await;
        let known = desk.list(TODAY, &ada).await;
        platform.advance(SignedDuration::from_mins(1));
        other.assign(&[&second.pickup], "", &ada).await;
        platform.advance(SignedDuration::from_mins(1));
        let never = CourierList { courier: ben.clone(), etag: known.etag.clone(), ..Default::default() };

        let refused = desk.set(TODAY, vec![with_tasks(&known, &[]), never]).await.unwrap_err();

        assert_changed(&refused, &[&ada, &ben], &[]);
        let violations = refused.get_details_precondition_failure().unwrap().violations;
        let violations = violations.into_iter().map(|found| [found.r#type, found.subject, found.description]);
        let violation = |courier: &str, what: String| {
            ["LIST".to_owned(), format!("{courier} on {TODAY}"), what]
        };
        let expected = [
            violation(&ada, format!("changed by {} at 2020-04-02T09:01:00Z", other.api_client)),
            violation(&ben, "was never changed".to_owned()),
        ];
        assert_eq!(violations.collect::<Vec<_>>(), expected);
        assert_eq!(desk.list(TODAY, &ada).await.changed_by, other.api_client);
    }

    /// "A task in a list not named is `lists_changed` with that list."
    async fn no_list_changes_if_a_task_is_in_a_list_that_is_not_named(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second]: [Order; 2] = orders(&client).await;
        let tomorrow = Order::on(&client, TOMORROW).await;
        desk.assign(&[&first.pickup, &tomorrow.pickup], "", &ben).await;
        let before = [desk.lists(TODAY).await, desk.lists(TOMORROW).await];
        let of_ada = desk.list(TODAY, &ada).await;

        for wanted in [tasks(&[&first]), tasks(&[&second, &first]), tasks(&[&second, &tomorrow])] {
            let refused = desk.set(TODAY, vec![with_tasks(&of_ada, &wanted)]).await.unwrap_err();
            assert_changed(&refused, &[&ben], &[&ada]);
        }
        // Nor the list of the same courier on another day.
        let of_ben = desk.list(TODAY, &ben).await;
        let refused = desk.set(TODAY, vec![with_tasks(&of_ben, &tasks(&[&first, &tomorrow]))]).await.unwrap_err();
        assert_refused(&refused, "LISTS_CHANGED");

        assert_eq!([desk.lists(TODAY).await, desk.lists(TOMORROW).await], before);
        assert_eq!(desk.place(&second.pickup).await, place("", "", 0));
    }

    async fn what_is_named_twice_is_a_violation(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&first.pickup], "", &ada).await;
        let (of_ada, of_ben) = (desk.list(TODAY, &ada).await, desk.list(TODAY, &ben).await);
        let before = desk.lists(TODAY).await;
        let pickup = &first.pickup;

        for lists in [
            // A courier, although with the same list; a task in a list, and in two.
            vec![of_ada.clone(), of_ben.clone(), of_ada.clone()],
            vec![with_tasks(&of_ada, &[pickup.clone(), first.dropoff.clone(), pickup.clone()])],
            vec![with_tasks(&of_ada, &tasks(&[&first, &second])), with_tasks(&of_ben, &tasks(&[&second]))],
        ] {
            let refused = desk.set(TODAY, lists).await.unwrap_err();
            assert_violations(&refused, &["lists"]);
        }

        assert_eq!(desk.lists(TODAY).await, before);
    }

    async fn a_request_has_1_to_100_lists_with_etags_and_at_most_1000_tasks(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        let list = desk.list(TODAY, &ada).await;
        let before = desk.lists(TODAY).await;
        let unknown = |start: usize, count: usize| {
            let ids = (start..start + count).map(|id| format!("00000000-0000-7000-8000-{id:012x}"));
            ids.collect::<Vec<_>>()
        };
        let lists = unknown(0, 101).into_iter().map(|id| CourierList {
            courier: format!("couriers/{id}"),
            ..list.clone()
        });
        let lists: Vec<_> = lists.map(|list| with_tasks(&list, &[])).collect();
        let long = |start: usize, count: usize, list: &CourierList| {
            let tasks = unknown(start, count).into_iter().map(|id| format!("tasks/{id}"));
            with_tasks(list, &tasks.collect::<Vec<_>>())
        };

        for (day, lists, fields) in [
            (TODAY, lists.clone(), &["lists"][..]),
            (TODAY, vec![long(0, 1001, &list)], &["lists"]),
            (TODAY, vec![long(0, 500, &list), long(500, 501, &lists[0])], &["lists"]),
            (TODAY, vec![CourierList { etag: String::new(), ..list.clone() }], &["lists"]),
            (TODAY, vec![], &["lists"]),
            ("", vec![list.clone()], &["day"]),
            ("tomorrow", vec![list.clone()], &["day"]),
            ("2020-02-30", lists, &["day", "lists"]),
        ] {
            let refused = desk.set(day, lists).await.unwrap_err();
            assert_violations(&refused, fields);
        }

        assert_eq!(desk.lists(TODAY).await, before);
    }

    async fn no_list_changes_if_a_courier_or_a_task_does_not_exist(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&first.pickup], "", &ada).await;
        let list = desk.list(TODAY, &ada).await;
        let before = desk.lists(TODAY).await;
        let (task, courier) = (format!("tasks/{UNKNOWN_ID}"), format!("couriers/{UNKNOWN_ID}"));
        let of_unknown = CourierList {
            courier: courier.clone(),
            etag: before.empty_etag.clone(),
            ..Default::default()
        };

        let with_unknown = [&second.pickup, &task, &second.dropoff].map(Clone::clone);
        let refused = desk.set(TODAY, vec![with_tasks(&list, &with_unknown)]).await.unwrap_err();
        assert_unknown(&refused, &task);
        let lists = vec![with_tasks(&list, &[]), with_tasks(&of_unknown, &list.tasks)];
        assert_unknown(&desk.set(TODAY, lists).await.unwrap_err(), &courier);
        let lists = vec![with_tasks(&list, &tasks(&[&second])), of_unknown];
        assert_unknown(&desk.set(TODAY, lists).await.unwrap_err(), &courier);

        assert_eq!(desk.lists(TODAY).await, before);
        assert_eq!(desk.place(&second.pickup).await, place("", "", 0));
    }

    async fn a_day_is_a_date(platform: &Platform) {
        let desk = Desk::authorized(platform).await;
        for day in ["today", "2020-04-31", "02/04/2020", "2020-04-02 12:00-14:00"] {
            let day = day.to_owned();
            let lists = ListCourierListsRequest { day: day.clone() };
            assert_violations(&desk.list_courier_lists(lists).await.unwrap_err(), &["day"]);
            let tasks = ListTasksRequest { day, ..Default::default() };
            assert_violations(&desk.list_tasks(tasks).await.unwrap_err(), &["day"]);
        }
    }

    /// A shop may not even ask.
    async fn only_dispatch_has_lists(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.operator().await;
        let program = operator.create_client("", &["tasks:all"]).await;
        let [order]: [Order; 1] = orders(&client).await;
        let ada = Desk::authorized(platform).await.courier("Ada").await;

        for (credentials, scope) in [(&platform.demo_client, "tasks"), (&program, "tasks:all")] {
            let caller = Desk::with(platform, credentials, scope).await;
            let assign = caller.assign_tasks(assignment(&[&order.pickup], "", &ada)).await;
            let set = caller.set_courier_lists(SetCourierListsRequest::default()).await;
            let list = caller.list_courier_lists(ListCourierListsRequest::default()).await;
            for refused in [assign.err(), set.err(), list.err()] {
                let code = refused.map(|refused| refused.code());
                assert_eq!(code, Some(tonic::Code::PermissionDenied), "{scope}");
            }
        }
        let desk = Desk::with(platform, &platform.operator_client, "admin").await;
        desk.assign(&[&order.pickup], "", &ada).await;
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&order]));
    }
}
