//! Changes of lists at one instant, at one core and at two: one wins, the other is refused, and no task is in
//! two lists.

use std::collections::BTreeSet;

use proto::{CourierList, RescheduleTaskRequest};
use tonic::Status;

use super::{
    Desk, Order, TODAY, TOMORROW, assert_refused, assignment, list_of, orders, place, tasks,
    with_tasks,
};
use crate::harness::{ApiClient, Platform};

/// How many times lists are replaced at once.
const LIST_ROUNDS: usize = 20;
/// How many times a task is assigned at once.
const ASSIGNMENT_ROUNDS: usize = 50;
/// How many times all of it is done at once.
const MIXED_ROUNDS: usize = 20;

/// What a list has, without who changed it when.
fn content(list: &CourierList) -> (&str, &str, &[String]) {
    (&list.courier, &list.etag, &list.tasks)
}

/// A list is reversed and moved to another courier at once.
async fn replace_lists([first, second]: [&Desk; 2], client: &ApiClient) {
    let (ada, ben) = (first.courier("Ada").await, first.courier("Ben").await);
    let [one, other]: [Order; 2] = orders(client).await;
    first.assign(&[&one.pickup, &other.pickup], "", &ada).await;
    for round in 0..LIST_ROUNDS {
        let of_ada = first.list(TODAY, &ada).await;
        let of_ben = first.list(TODAY, &ben).await;
        let reversed = |list: &CourierList| {
            let tasks: Vec<_> = list.tasks.iter().rev().cloned().collect();
            with_tasks(list, &tasks)
        };
        let reversed = vec![reversed(&of_ada), reversed(&of_ben)];
        let swapped = vec![
            with_tasks(&of_ben, &of_ada.tasks),
            with_tasks(&of_ada, &of_ben.tasks),
        ];

        let both = tokio::join!(first.set(TODAY, reversed), second.set(TODAY, swapped));

        let (mut set, refused) = match both {
            (Ok(set), Err(refused)) | (Err(refused), Ok(set)) => (set, refused),
            both => panic!("{round}: {both:?}"),
        };
        assert_refused(&refused, "LISTS_CHANGED");
        if set[0].courier == ben {
            set.reverse();
        }
        let lists = [first.list(TODAY, &ada).await, first.list(TODAY, &ben).await];
        let found: Vec<_> = lists.iter().map(content).collect();
        let expected: Vec<_> = set.iter().map(content).collect();
        assert_eq!(found, expected, "{round}");
    }
}

/// Two couriers get the tasks of a delivery at once, by its pickup and by its dropoff.
async fn assign([first, second]: [&Desk; 2], client: &ApiClient) {
    let mut couriers = Vec::new();
    for name in ["Ada", "Ben", "Cem"] {
        couriers.push(first.courier(name).await);
    }
    let [order]: [Order; 1] = orders(client).await;
    let (pickup, dropoff) = ([&order.pickup], [&order.dropoff]);
    let mut holder = String::new();
    for round in 0..ASSIGNMENT_ROUNDS {
        let mut others = couriers.iter().filter(|courier| **courier != holder);
        let [one, other] = [others.next().unwrap(), others.next().unwrap()];

        let (of_one, of_other) = tokio::join!(
            first.assign(&pickup, &holder, one),
            second.assign(&dropoff, &holder, other),
        );

        let winner = if of_one.is_empty() {
            assert_eq!(of_other, [&*order.dropoff], "{round}");
            one
        } else {
            assert_eq!(of_one, [&*order.pickup], "{round}");
            assert_eq!(of_other, [""; 0], "{round}");
            other
        };
        let lists = first.lists(TODAY).await.lists;
        let lists: Vec<_> = lists
            .iter()
            .map(|list| (&list.courier, &list.tasks))
            .collect();
        assert_eq!(lists, [(winner, &tasks(&[&order]))], "{round}");
        holder.clone_from(winner);
    }
}

/// Fails unless each task is in the one list that it says, or in none.
async fn check_places(desk: &Desk, orders: &[&Order], couriers: &[&str]) {
    let mut listed = BTreeSet::new();
    for day in [TODAY, TOMORROW] {
        for courier in couriers {
            for task in desk.tasks_of(day, courier).await {
                assert!(listed.insert(task.clone()), "{task} is in two lists");
            }
        }
    }
    for task in tasks(orders) {
        let is_unassigned = desk.place(&task).await == place("", "", 0);
        assert_eq!(is_unassigned, !listed.contains(&task), "{task}");
    }
}

/// The same tasks and lists in opposite orders: in one order of locks for all, nobody waits for ever.
async fn change_all([first, second]: [&Desk; 2], client: &ApiClient) {
    let (ada, ben) = (first.courier("Ada").await, first.courier("Ben").await);
    let [one, two, three]: [Order; 3] = orders(client).await;
    let forward = [&one.pickup, &two.pickup, &three.pickup];
    let backward = [&three.dropoff, &two.dropoff, &one.pickup];
    let give = async |desk: &Desk, tasks: &[&String], courier: &str, day: &str| {
        let mut request = assignment(tasks, "", courier);
        for given in &mut request.moves {
            given.expected_courier = Some(desk.task(&given.task).await.courier);
        }
        day.clone_into(&mut request.day);
        desk.assign_tasks(request).await.map(|_| ())
    };
    let move_list = async |desk: &Desk, from: &str, to: &str| {
        let found = desk.lists(TODAY).await;
        let [from, to] = [from, to].map(|courier| list_of(&found, courier));
        let moved = [&to.tasks[..], &from.tasks[..]].concat();
        let lists = vec![with_tasks(&from, &[]), with_tasks(&to, &moved)];
        desk.set(TODAY, lists).await.map(|_| ())
    };
    let reschedule = async |desk: &Desk, order: &Order, hour: usize| {
        let request = RescheduleTaskRequest {
            name: order.dropoff.clone(),
            time_slot: Some(format!("{TODAY} {hour}:00-21:00")),
            both: true,
            ..Default::default()
        };
        desk.reschedule_task(request).await.map(|_| ())
    };

    for round in 0..MIXED_ROUNDS {
        let hour = 19 + round % 2;
        let done: [Result<(), Status>; 8] = tokio::join!(
            give(first, &forward, &ada, TODAY),
            give(second, &backward, &ben, TODAY),
            give(first, &backward[1..], &ben, TOMORROW),
            give(second, &forward[1..], "", ""),
            move_list(first, &ada, &ben),
            move_list(second, &ben, &ada),
            reschedule(first, &two, hour),
            reschedule(second, &three, hour),
        )
        .into();

        let (given, others) = done.split_at(4);
        for done in given {
            // Who assigns learns of conflicts.
            assert!(done.is_ok(), "{round}: {done:?}");
        }
        for refused in others.iter().filter_map(|done| done.as_ref().err()) {
            assert_refused(refused, "LISTS_CHANGED");
        }
        check_places(first, &[&one, &two, &three], &[&ada, &ben]).await;
    }
}

on_both_databases! {
    async fn of_two_changes_of_lists_with_the_same_etags_one_succeeds(platform: &Platform) {
        let client = platform.client().await;
        let desks = [Desk::authorized(platform).await, Desk::authorized(platform).await];

        replace_lists(desks.each_ref(), &client).await;
    }

    async fn of_two_couriers_one_gets_the_tasks_of_a_delivery(platform: &Platform) {
        let client = platform.client().await;
        let desks = [Desk::authorized(platform).await, Desk::authorized(platform).await];

        assign(desks.each_ref(), &client).await;
    }

    async fn no_task_gets_into_two_lists_and_nobody_waits_for_ever(platform: &Platform) {
        let client = platform.client().await;
        let desks = [Desk::authorized(platform).await, Desk::authorized(platform).await];

        Box::pin(change_all(desks.each_ref(), &client)).await;
    }
}

/// "Two commands at one instant on two cores: one wins, the other learns which."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cores_change_lists_as_one_does() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let client = platforms[0].client().await;
    let desks = [
        Desk::authorized(&platforms[0]).await,
        Desk::authorized(&platforms[1]).await,
    ];

    replace_lists(desks.each_ref(), &client).await;
    // What follows looks at all lists.
    for list in desks[0].lists(TODAY).await.lists {
        desks[1].assign(&list.tasks, &list.courier, "").await;
    }
    assign(desks.each_ref(), &client).await;
    for list in desks[1].lists(TODAY).await.lists {
        desks[0].assign(&list.tasks, &list.courier, "").await;
    }
    Box::pin(change_all(desks.each_ref(), &client)).await;

    Platform::stop_both(platforms).await;
}
