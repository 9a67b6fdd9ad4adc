//! `ListCourierLists` and `SetCourierLists`: the lists of a day, read and replaced together.

use jiff::SignedDuration;
use proto::{CourierList, ListCourierListsResponse, task::State};

use super::{Desk, Order, TODAY, TOMORROW, now, orders, place, tasks, with_tasks};
use crate::harness::Platform;

/// In another order than they are.
fn reversed(tasks: &[String]) -> Vec<String> {
    tasks.iter().rev().cloned().collect()
}

on_both_databases! {
    async fn the_lists_of_a_day_have_their_tasks_in_order_and_who_changed_them_when(platform: &Platform) {
        let client = platform.client().await;
        let (desk, other) = (Desk::authorized(platform).await, Desk::authorized(platform).await);
        let [ada, ben, idle] = [desk.courier("Ada").await, desk.courier("Ben").await, desk.courier("Cem").await];
        let [first, second, third]: [Order; 3] = orders(&client).await;
        let tomorrow = Order::on(&client, TOMORROW).await;
        let none = desk.lists("").await;
        let expected = ListCourierListsResponse {
            day: TODAY.to_owned(),
            lists: vec![],
            empty_etag: none.empty_etag.clone(),
            position: 0,
        };
        assert_eq!(none, expected);
        assert_ne!(none.empty_etag, "");

        platform.advance(SignedDuration::from_mins(1));
        desk.assign(&[&third.pickup, &first.pickup], "", &ada).await;
        let of_ada = (now(platform), desk.api_client.clone(), tasks(&[&third, &first]));
        platform.advance(SignedDuration::from_mins(1));
        other.assign(&[&second.pickup, &tomorrow.pickup], "", &ben).await;
        let of_ben = (now(platform), other.api_client.clone(), tasks(&[&second]));

        let found = desk.lists(TODAY).await;
        let mut couriers = [(&ada, of_ada), (&ben, of_ben)];
        couriers.sort_by_key(|(courier, _)| (*courier).clone());
        let lists = couriers.into_iter().zip(&found.lists).map(|((courier, list), found)| {
            let (change_time, changed_by, tasks) = list;
            CourierList { courier: courier.clone(), etag: found.etag.clone(), tasks, change_time, changed_by }
        });
        let expected = ListCourierListsResponse { lists: lists.collect(), ..expected };
        assert_eq!(found, expected);
        assert_eq!(found.lists.len(), 2);
        assert_eq!(desk.lists("").await, expected);
        let next = desk.lists(TOMORROW).await;
        assert_eq!((&*next.day, &next.empty_etag), (TOMORROW, &expected.empty_etag));
        assert_eq!(next.lists.len(), 1);
        assert_eq!(desk.tasks_of(TOMORROW, &ben).await, tasks(&[&tomorrow]));
        assert_eq!(desk.lists("2020-04-04").await.lists, []);
        assert_eq!(desk.list(TODAY, &idle).await.etag, expected.empty_etag);
    }

    /// "Etags count members and order, not states."
    async fn an_etag_identifies_the_tasks_of_a_list_and_their_order(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second]: [Order; 2] = orders(&client).await;
        let etag = async || desk.list(TODAY, &ada).await.etag;
        let set = async |tasks: &[String]| {
            let list = with_tasks(&desk.list(TODAY, &ada).await, tasks);
            let set = desk.set(TODAY, vec![list]).await.unwrap();
            assert_eq!(set[0].etag, etag().await);
            etag().await
        };
        let both = tasks(&[&first, &second]);

        let mut etags = vec![etag().await];
        let (backward, swapped) = (reversed(&both), tasks(&[&second, &first]));
        for members in [&both[..1], &both[..3], &both[..], &backward[..], &swapped[..]] {
            etags.push(set(members).await);
        }

        let mut distinct = etags.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), etags.len(), "{etags:?}");
        assert_eq!(set(&both).await, etags[3]);
        desk.start(&first.pickup).await;
        desk.complete(&first.pickup).await;
        desk.fail(&second.dropoff).await;
        assert_eq!(etag().await, etags[3]);
    }

    async fn a_list_is_put_into_another_order(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, third]: [Order; 3] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        desk.assign(&[&third.pickup], "", &ben).await;
        let (of_ben, before) = (desk.list(TODAY, &ben).await, desk.list(TODAY, &ada).await);
        platform.advance(SignedDuration::from_mins(1));
        let other = Desk::authorized(platform).await;

        let order = [&first.pickup, &second.pickup, &second.dropoff, &first.dropoff].map(Clone::clone);
        let set = other.set(TODAY, vec![with_tasks(&before, &order)]).await.unwrap();

        let expected = CourierList {
            etag: set[0].etag.clone(),
            change_time: now(platform),
            changed_by: other.api_client.clone(),
            ..with_tasks(&before, &order)
        };
        assert_eq!(set, std::slice::from_ref(&expected));
        assert_eq!(desk.list(TODAY, &ada).await, expected);
        assert_eq!(desk.tasks_of(TODAY, &ada).await, order);
        assert_eq!(desk.list(TODAY, &ben).await, of_ben);
    }

    /// "Moving a courier's whole day, and undoing it, are this one call."
    async fn a_whole_day_is_moved_to_another_courier_and_back(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, third]: [Order; 3] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        desk.assign(&[&third.pickup], "", &ben).await;
        let [day, rest] = [desk.list(TODAY, &ada).await, desk.list(TODAY, &ben).await];
        let empty_etag = desk.lists(TODAY).await.empty_etag;
        let started = desk.start(&first.pickup).await;

        let all = tasks(&[&third, &first, &second]);
        let moved = vec![with_tasks(&day, &[]), with_tasks(&rest, &all)];
        let moved = desk.set(TODAY, moved).await.unwrap();

        assert_eq!((&moved[0].courier, &moved[0].etag, &moved[0].tasks), (&ada, &empty_etag, &vec![]));
        assert_eq!((&moved[1].courier, &moved[1].tasks), (&ben, &all));
        assert_eq!(desk.tasks_of(TODAY, &ben).await, all);
        assert_eq!(desk.lists(TODAY).await.lists, [moved[1].clone()]);
        let task = desk.task(&first.pickup).await;
        assert_eq!((task.state(), task.state_time), (State::Doing, started.state_time));

        // In the order of the request.
        let back = vec![with_tasks(&moved[1], &rest.tasks), with_tasks(&moved[0], &day.tasks)];
        let back = desk.set(TODAY, back).await.unwrap();

        for (found, expected) in back.iter().zip([&rest, &day]) {
            assert_eq!(
                (&found.courier, &found.etag, &found.tasks),
                (&expected.courier, &expected.etag, &expected.tasks)
            );
            assert_eq!(desk.tasks_of(TODAY, &found.courier).await, expected.tasks);
        }
        assert_eq!(back.len(), 2);
    }

    async fn a_list_of_300_tasks_is_moved_to_another_courier_and_back_in_its_order(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let mut orders = Vec::new();
        for _ in 0..150 {
            orders.push(Order::on(&client, TODAY).await);
        }
        let dropoffs = orders.iter().rev().map(|order| order.dropoff.clone());
        let all: Vec<_> = orders.iter().map(|order| order.pickup.clone()).chain(dropoffs).collect();
        let empty = [desk.list(TODAY, &ada).await, desk.list(TODAY, &ben).await];

        let planned = desk.set(TODAY, vec![with_tasks(&empty[0], &all)]).await.unwrap();
        platform.advance(SignedDuration::from_mins(1));
        let moved = vec![with_tasks(&planned[0], &[]), with_tasks(&empty[1], &all)];
        let moved = desk.set(TODAY, moved).await.unwrap();

        assert_eq!((&moved[0].tasks, &moved[1].tasks), (&vec![], &all));
        assert_eq!(desk.lists(TODAY).await.lists, [moved[1].clone()]);
        platform.advance(SignedDuration::from_mins(1));
        let back = vec![with_tasks(&moved[0], &all), with_tasks(&moved[1], &[])];
        let back = desk.set(TODAY, back).await.unwrap();
        assert_eq!((&back[0].etag, &back[0].tasks, &back[1].tasks), (&planned[0].etag, &all, &vec![]));
        assert_eq!(desk.lists(TODAY).await.lists, [back[0].clone()]);
        assert_eq!(desk.tasks_of(TODAY, &ada).await, all);
        for task in [&all[0], &all[299]] {
            let history = desk.history(task).await;
            let events: Vec<_> = history.iter().map(|event| (&*event.event, &*event.courier)).collect();
            let expected = [&ada, &ben, &ada].map(|courier| ("task:assigned", &**courier));
            assert_eq!(events[1..], expected);
        }
    }

    async fn a_task_that_is_left_out_becomes_unassigned(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, free]: [Order; 3] = orders(&client).await;
        desk.assign(&[&first.pickup], "", &ada).await;
        desk.assign(&[&second.pickup], "", &ben).await;
        let lists = [desk.list(TODAY, &ada).await, desk.list(TODAY, &ben).await];

        // One moves, one is left out, and one gets its first courier.
        let wanted = [vec![second.dropoff.clone(), free.pickup.clone()], vec![first.pickup.clone()]];
        let set = lists.iter().zip(&wanted).map(|(list, tasks)| with_tasks(list, tasks));
        desk.set(TODAY, set.collect()).await.unwrap();

        assert_eq!(desk.tasks_of(TODAY, &ada).await, wanted[0]);
        assert_eq!(desk.tasks_of(TODAY, &ben).await, wanted[1]);
        for left_out in [&first.dropoff, &second.pickup, &free.dropoff] {
            assert_eq!(desk.place(left_out).await, place("", "", 0));
        }
        let ada = desk.list(TODAY, &ada).await;
        let emptied = desk.set(TODAY, vec![with_tasks(&ada, &[])]).await.unwrap();
        assert_eq!(emptied[0].tasks, [""; 0]);
        assert_eq!(emptied[0].etag, desk.lists(TODAY).await.empty_etag);
        for task in &wanted[0] {
            assert_eq!(desk.place(task).await, place("", "", 0));
        }
    }

    /// "DONE, FAILED and CANCELLED tasks keep courier and place whatever is asked."
    async fn a_settled_task_keeps_its_courier_and_its_place(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second, free]: [Order; 3] = orders(&client).await;
        let all = tasks(&[&first, &second]);
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        desk.complete(&first.pickup).await;
        desk.fail(&second.pickup).await;
        desk.complete(&free.pickup).await;
        let order = |order: [usize; 4]| order.map(|index| all[index].clone()).to_vec();

        // Ada's list and Ben's as requested, and as they become: the settled ones stay first and third.
        for (of_ada, of_ben, found) in [
            (order([3, 2, 1, 0]), vec![], [order([0, 3, 2, 1]), vec![]]),
            (vec![all[1].clone(), all[3].clone()], vec![], [order([0, 1, 2, 3]), vec![]]),
            // One without a courier gets none.
            (order([1, 0, 3, 2]), vec![free.pickup.clone()], [order([0, 1, 2, 3]), vec![]]),
            (vec![], all.clone(), [vec![all[0].clone(), all[2].clone()], vec![all[1].clone(), all[3].clone()]]),
            (vec![], vec![], [vec![all[0].clone(), all[2].clone()], vec![]]),
        ] {
            let lists = [desk.list(TODAY, &ada).await, desk.list(TODAY, &ben).await];
            let wanted = vec![with_tasks(&lists[0], &of_ada), with_tasks(&lists[1], &of_ben)];

            let set = desk.set(TODAY, wanted).await.unwrap();

            for (index, courier) in [&ada, &ben].into_iter().enumerate() {
                assert_eq!(set[index].tasks, found[index], "{of_ada:?} {of_ben:?}");
                assert_eq!(desk.list(TODAY, courier).await.tasks, found[index]);
            }
        }
        for task in [&first.pickup, &second.pickup] {
            assert_eq!(desk.task(task).await.courier, ada);
        }
        for task in [&first.dropoff, &second.dropoff, &free.pickup] {
            assert_eq!(desk.place(task).await, place("", "", 0));
        }
    }

    async fn the_tasks_of_a_disabled_courier_are_moved_by_lists(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        desk.disable(&ada, true).await;
        let lists = [desk.list(TODAY, &ada).await, desk.list(TODAY, &ben).await];

        let moved = vec![with_tasks(&lists[0], &[]), with_tasks(&lists[1], &lists[0].tasks)];
        desk.set(TODAY, moved).await.unwrap();

        assert_eq!(desk.tasks_of(TODAY, &ben).await, tasks(&[&order]));
        assert_eq!(desk.list(TODAY, &ada).await.tasks, [""; 0]);
    }
}
