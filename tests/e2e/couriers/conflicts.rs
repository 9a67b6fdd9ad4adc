//! What `AssignTasks` leaves where it is, and what it refuses as a whole.

use proto::{AssignTasksRequest, Task, iri, task::State};

use super::{
    Desk, Order, TODAY, assert_refused, assert_unknown, assert_violations, assignment, orders,
    place, tasks,
};
use crate::harness::{Platform, UNKNOWN_ID, iri};

on_both_databases! {
    /// "A task whose courier is another by now is left and comes back in `conflicts`."
    async fn a_task_that_has_another_courier_than_expected_stays(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, free]: [Order; 3] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        let before = desk.lists(TODAY).await;

        for (order, expected, courier) in [
            (&first, "", &*ben),
            (&first, "", &*ada),
            (&first, "", ""),
            (&first, &*ben, &*ben),
            (&first, &*ben, ""),
            (&free, &*ada, &*ben),
            (&free, &*ada, ""),
        ] {
            for task in [&order.pickup, &order.dropoff] {
                let conflicts = desk.assign(&[task], expected, courier).await;
                assert_eq!(conflicts, [&**task], "{expected} {courier}");
            }
        }

        assert_eq!(desk.lists(TODAY).await, before);
        assert_eq!(desk.place(&free.pickup).await, place("", "", 0));
        // The others of the same request move.
        let moves = [&first.dropoff, &free.dropoff, &second.pickup];
        assert_eq!(desk.assign(&moves, &ada, &ben).await, [&*free.dropoff]);
        assert_eq!(desk.lists(TODAY).await.lists.len(), 1);
        assert_eq!(desk.tasks_of(TODAY, &ben).await, tasks(&[&first, &second]));
    }

    async fn a_delivery_stays_if_its_other_task_has_another_courier(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;
        let single = |task: &String, expected: &str, courier: &str| AssignTasksRequest {
            single: true,
            ..assignment(&[task], expected, courier)
        };
        desk.assign_tasks(single(&order.pickup, "", &ada)).await.unwrap();

        for (task, expected) in [(&order.dropoff, ""), (&order.pickup, &*ada)] {
            let conflicts = desk.assign(&[task], expected, &ben).await;
            assert_eq!(conflicts, [&**task]);
        }

        assert_eq!(desk.tasks_of(TODAY, &ada).await, [&*order.pickup]);
        assert_eq!(desk.place(&order.dropoff).await, place("", "", 0));
        // If it stays anyway, its courier is not asked for.
        let alone = desk.assign_tasks(single(&order.dropoff, "", &ben)).await.unwrap();
        assert_eq!(alone.conflicts, [""; 0]);
        assert_eq!(desk.tasks_of(TODAY, &ben).await, [&*order.dropoff]);
    }

    /// "DONE, FAILED and CANCELLED tasks keep courier and place whatever is asked."
    async fn a_settled_task_stays(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);

        for state in [State::Done, State::Failed] {
            let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
            let [order, free]: [Order; 2] = orders(&client).await;
            desk.assign(&[&order.pickup], "", &ada).await;
            for task in [&order.pickup, &free.pickup] {
                match state {
                    State::Done => desk.complete(task).await,
                    _ => desk.fail(task).await,
                };
            }
            let before = [desk.task(&order.pickup).await, desk.task(&free.pickup).await];
            assert_eq!(before.each_ref().map(Task::state), [state; 2]);

            for (task, expected, courier) in [
                (&order.pickup, &*ada, &*ben),
                (&order.pickup, &*ada, &*ada),
                (&order.pickup, &*ada, ""),
                (&free.pickup, "", &*ben),
            ] {
                let request = AssignTasksRequest { single: true, ..assignment(&[task], expected, courier) };
                let conflicts = desk.assign_tasks(request).await.unwrap().conflicts;
                assert_eq!(conflicts, [&**task], "{state:?} {courier}");
            }
            assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&order]));

            // The dropoffs move without it, and it is no conflict that it stays.
            assert_eq!(desk.assign(&[&order.dropoff], &ada, &ben).await, [""; 0]);
            assert_eq!(desk.assign(&[&free.dropoff], "", &ben).await, [""; 0]);
            assert_eq!(desk.tasks_of(TODAY, &ada).await, [&*order.pickup]);
            assert_eq!(desk.tasks_of(TODAY, &ben).await, [&*order.dropoff, &*free.dropoff]);
            assert_eq!([desk.task(&order.pickup).await, desk.task(&free.pickup).await], before);
        }
    }

    async fn the_tasks_of_a_cancelled_delivery_stay(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [cancelled, other]: [Order; 2] = orders(&client).await;
        desk.assign(&[&cancelled.pickup, &other.pickup], "", &ada).await;
        client.delete(iri(&cancelled.delivery)).await.expect(204);
        let before = desk.lists(TODAY).await;
        assert_eq!(before.lists[0].tasks, tasks(&[&cancelled, &other]));

        for task in tasks(&[&cancelled]) {
            assert_eq!(desk.task(&task).await.state(), State::Cancelled);
            for courier in [&*ben, &*ada, ""] {
                assert_eq!(desk.assign(&[&task], &ada, courier).await, [&*task], "{courier}");
            }
        }

        assert_eq!(desk.lists(TODAY).await, before);
    }

    async fn a_started_task_moves_and_stays_started(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        let started = desk.start(&order.pickup).await;

        for (expected, courier) in [(&*ada, &*ben), (&*ben, ""), ("", &*ada)] {
            assert_eq!(desk.assign(&[&order.pickup], expected, courier).await, [""; 0]);

            let after = desk.task(&order.pickup).await;
            assert_eq!((after.state(), after.state_time), (State::Doing, started.state_time));
            assert_eq!(after.courier, courier);
        }
    }

    /// "A disabled courier keeps its lists, and gets no more tasks."
    async fn a_disabled_courier_gets_no_tasks_and_keeps_those_that_it_has(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, free]: [Order; 3] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        let before = desk.lists(TODAY).await;

        desk.disable(&ada, true).await;

        assert_eq!(desk.lists(TODAY).await, before);
        let request = assignment(&[&free.pickup], "", &ada);
        assert_refused(&desk.assign_tasks(request).await.unwrap_err(), "COURIER_DISABLED");
        assert_eq!(desk.lists(TODAY).await, before);
        assert_eq!(desk.place(&free.pickup).await, place("", "", 0));
        assert_eq!(desk.assign(&[&first.pickup], &ada, &ben).await, [""; 0]);
        assert_eq!(desk.assign(&[&second.pickup], &ada, "").await, [""; 0]);
        assert_eq!(desk.tasks_of(TODAY, &ben).await, tasks(&[&first]));
        desk.disable(&ada, false).await;
        desk.assign(&[&free.pickup], "", &ada).await;
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&free]));
    }

    async fn nothing_moves_if_a_task_or_the_courier_does_not_exist(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second]: [Order; 2] = orders(&client).await;
        let task = format!("tasks/{UNKNOWN_ID}");
        let courier = format!("couriers/{UNKNOWN_ID}");

        for moves in [[&first.pickup, &task, &second.pickup], [&task, &first.pickup, &second.pickup]] {
            let request = assignment(&moves, "", &ada);
            assert_unknown(&desk.assign_tasks(request).await.unwrap_err(), &task);
        }
        let request = assignment(&[&first.pickup], "", &courier);
        assert_unknown(&desk.assign_tasks(request).await.unwrap_err(), &courier);
        // Nor if it is a delivery.
        let delivery = iri::name(iri(&first.delivery)).to_owned();
        let request = assignment(&[&first.pickup, &delivery], "", &ada);
        let refused = desk.assign_tasks(request).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused:?}");

        assert_eq!(desk.lists(TODAY).await.lists, []);
        for task in tasks(&[&first, &second]) {
            assert_eq!(desk.place(&task).await, place("", "", 0));
        }
    }

    async fn an_assignment_has_1_to_100_moves_and_a_day(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        let valid = assignment(&[&order.pickup], "", &ada);
        let moves = |count: usize| vec![valid.moves[0].clone(); count];

        for (moves, day, fields) in [
            (moves(0), "", &["moves"][..]),
            (moves(101), "", &["moves"]),
            (moves(1), "tomorrow", &["day"]),
            (moves(1), "2020-13-01", &["day"]),
            (moves(1), "2020-04-31", &["day"]),
            (moves(0), "today", &["day", "moves"]),
        ] {
            let count = moves.len();
            let request = AssignTasksRequest { moves, day: day.to_owned(), ..valid.clone() };
            let refused = desk.assign_tasks(request).await.unwrap_err();
            assert_violations(&refused, fields);
            assert_eq!(desk.lists(TODAY).await.lists, [], "{count} {day}");
        }
    }
}
