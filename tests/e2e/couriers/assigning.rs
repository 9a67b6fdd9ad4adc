//! `AssignTasks`: tasks are put into a courier's list, moved within it and to another one, and taken out.

use jiff::SignedDuration;
use proto::{AssignTasksRequest, Task};

use super::{Desk, Order, TODAY, TOMORROW, assignment, orders, place, tasks, with_tasks};
use crate::harness::Platform;

on_both_databases! {
    /// Whichever of them is named, or both.
    async fn both_tasks_of_a_delivery_move_together_pickup_first(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second, third]: [Order; 3] = orders(&client).await;
        let before = [desk.task(&first.pickup).await, desk.task(&first.dropoff).await];
        platform.advance(SignedDuration::from_mins(1));

        assert_eq!(desk.assign(&[&first.dropoff], "", &ada).await, [""; 0]);

        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&first]));
        for (list_position, before) in (0..).zip(before) {
            let after = desk.task(&before.name).await;
            let expected = Task {
                courier: ada.clone(),
                list_day: TODAY.to_owned(),
                list_position,
                update_time: after.update_time,
                ..before
            };
            assert_eq!(after, expected);
        }
        // In the order of the request, after those that are there.
        let moves = [&third.pickup, &second.dropoff, &second.pickup];
        assert_eq!(desk.assign(&moves, "", &ada).await, [""; 0]);
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&first, &third, &second]));
    }

    async fn a_single_task_moves_alone(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;
        let single = |task: &String, expected: &str, courier: &str| AssignTasksRequest {
            single: true,
            ..assignment(&[task], expected, courier)
        };

        desk.assign_tasks(single(&order.dropoff, "", &ada)).await.unwrap();

        assert_eq!(desk.tasks_of(TODAY, &ada).await, [&*order.dropoff]);
        assert_eq!(desk.place(&order.pickup).await, place("", "", 0));
        desk.assign_tasks(single(&order.pickup, "", &ben)).await.unwrap();
        assert_eq!(desk.tasks_of(TODAY, &ada).await, [&*order.dropoff]);
        assert_eq!(desk.tasks_of(TODAY, &ben).await, [&*order.pickup]);
        desk.assign_tasks(single(&order.dropoff, &ada, "")).await.unwrap();
        assert_eq!(desk.place(&order.dropoff).await, place("", "", 0));
        assert_eq!(desk.tasks_of(TODAY, &ben).await, [&*order.pickup]);
        // The order of a list is the desk's.
        desk.assign_tasks(single(&order.dropoff, "", &ben)).await.unwrap();
        let to_start = AssignTasksRequest { position: Some(0), ..single(&order.dropoff, &ben, &ben) };
        desk.assign_tasks(to_start).await.unwrap();
        assert_eq!(desk.tasks_of(TODAY, &ben).await, [&*order.dropoff, &*order.pickup]);
    }

    async fn tasks_are_put_before_the_task_at_a_position(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second, third, fourth]: [Order; 4] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        let at = async |position: u32, order: &Order, expected: &str| {
            let request = AssignTasksRequest {
                position: Some(position),
                ..assignment(&[&order.dropoff], expected, &ada)
            };
            let assigned = desk.assign_tasks(request).await.unwrap();
            assert_eq!(assigned.conflicts, [""; 0]);
            desk.tasks_of(TODAY, &ada).await
        };

        let found = at(1, &third, "").await;
        let mut expected = tasks(&[&first, &second]);
        expected.splice(1..1, tasks(&[&third]));
        assert_eq!(found, expected);

        let found = at(0, &fourth, "").await;
        expected.splice(0..0, tasks(&[&fourth]));
        assert_eq!(found, expected);

        // Within the list: what is last becomes first, and the first last.
        assert_eq!(expected[7], second.dropoff);
        let found = at(0, &second, &ada).await;
        expected.retain(|task| ![&second.pickup, &second.dropoff].contains(&task));
        expected.splice(0..0, tasks(&[&second]));
        assert_eq!(found, expected);
        desk.assign(&[&second.pickup], &ada, &ada).await;
        expected.rotate_left(2);
        assert_eq!(desk.tasks_of(TODAY, &ada).await, expected);
    }

    async fn tasks_move_to_another_courier_and_another_day(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, third]: [Order; 3] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup, &third.pickup], "", &ada).await;

        desk.assign(&[&second.pickup], &ada, &ben).await;

        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&first, &third]));
        assert_eq!(desk.tasks_of(TODAY, &ben).await, tasks(&[&second]));
        let request = AssignTasksRequest {
            day: TOMORROW.to_owned(),
            ..assignment(&[&third.pickup], &ada, &ben)
        };
        desk.assign_tasks(request).await.unwrap();
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&first]));
        assert_eq!(desk.tasks_of(TODAY, &ben).await, tasks(&[&second]));
        assert_eq!(desk.tasks_of(TOMORROW, &ben).await, tasks(&[&third]));
        // To the next day of the same courier.
        let request = AssignTasksRequest {
            day: TOMORROW.to_owned(),
            position: Some(0),
            ..assignment(&[&second.pickup], &ben, &ben)
        };
        desk.assign_tasks(request).await.unwrap();
        assert_eq!(desk.tasks_of(TOMORROW, &ben).await, tasks(&[&second, &third]));
        let lists = desk.lists(TODAY).await.lists.into_iter();
        assert_eq!(lists.map(|list| list.courier).collect::<Vec<_>>(), [ada]);
    }

    async fn tasks_are_taken_out_of_any_list(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, third]: [Order; 3] = orders(&client).await;
        let before = desk.task(&second.pickup).await;
        desk.assign(&[&first.pickup, &second.pickup, &third.pickup], "", &ada).await;

        assert_eq!(desk.assign(&[&second.dropoff], &ada, "").await, [""; 0]);

        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&first, &third]));
        let after = desk.task(&second.pickup).await;
        assert_eq!(after, Task { update_time: after.update_time, ..before });
        assert_eq!(desk.place(&second.dropoff).await, place("", "", 0));
        // Those of several couriers at once, and one that has none.
        desk.assign(&[&third.pickup], &ada, &ben).await;
        let mut request = assignment(&[&first.pickup], &ada, "");
        request.moves.extend(assignment(&[&third.pickup], &ben, "").moves);
        request.moves.extend(assignment(&[&second.pickup], "", "").moves);
        let unassigned = desk.assign_tasks(request).await.unwrap();
        assert_eq!(unassigned.conflicts, [""; 0]);
        assert_eq!(desk.lists(TODAY).await.lists, []);
        for task in tasks(&[&first, &second, &third]) {
            assert_eq!(desk.place(&task).await, place("", "", 0));
        }
    }

    async fn changes_of_a_list_count_its_places_from_0_without_a_gap(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second, third, fourth]: [Order; 4] = orders(&client).await;
        let check = async |members: &[&Order]| {
            let members = tasks(members);
            assert_eq!(desk.tasks_of(TODAY, &ada).await, members);
            for (position, task) in (0..).zip(&members) {
                assert_eq!(desk.place(task).await, place(&ada, TODAY, position));
            }
        };

        desk.assign(&[&first.pickup, &second.pickup, &third.pickup], "", &ada).await;
        check(&[&first, &second, &third]).await;
        desk.assign(&[&second.pickup], &ada, "").await;
        check(&[&first, &third]).await;
        let inserted = AssignTasksRequest {
            position: Some(2),
            ..assignment(&[&fourth.pickup, &second.pickup], "", &ada)
        };
        desk.assign_tasks(inserted).await.unwrap();
        check(&[&first, &fourth, &second, &third]).await;
        let list = desk.list(TODAY, &ada).await;
        let rest = tasks(&[&second, &fourth, &first]);
        desk.set(TODAY, vec![with_tasks(&list, &rest)]).await.unwrap();
        check(&[&second, &fourth, &first]).await;
    }
}
