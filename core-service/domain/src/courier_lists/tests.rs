use jiff::{SignedDuration, Timestamp};
use proptest::{collection, option, prelude::*, sample};

use super::*;
use crate::{
    delivery::Delivery,
    fixture,
    id::DeliveryId,
    task::{TaskState, TimeWindow},
};

const DAY: Date = Date::constant(2026, 12, 1);

/// Two couriers, always the same.
fn couriers() -> [CourierId; 2] {
    [1, 2].map(|number| CourierId(uuid::Uuid::from_u128(number)))
}

fn lists() -> [ListKey; 2] {
    couriers().map(|courier_id| ListKey {
        day: DAY,
        courier_id,
    })
}

/// Deliveries whose tasks have ascending ids: pickup, dropoff, pickup, dropoff and so on.
fn deliveries(count: usize) -> Vec<Delivery> {
    let numbered = (0_u128..).map(|number| {
        let mut delivery = fixture::delivery(1000);
        delivery.id = DeliveryId(uuid::Uuid::from_u128(number));
        for (task, offset) in [(&mut delivery.pickup, 0), (&mut delivery.dropoff, 1)] {
            task.id = TaskId(uuid::Uuid::from_u128(2 * number + offset));
            task.delivery_id = delivery.id;
        }
        delivery
    });
    numbered.take(count).collect()
}

fn tasks(deliveries: &[Delivery]) -> Vec<Task> {
    let tasks = deliveries
        .iter()
        .flat_map(|delivery| [delivery.pickup.clone(), delivery.dropoff.clone()]);
    tasks.collect()
}

/// Tasks of which those with these numbers are in lists, in this order.
fn placed(mut tasks: Vec<Task>, orders: [&[usize]; 2]) -> Vec<Task> {
    for (list, order) in lists().into_iter().zip(orders) {
        for (position, number) in (0..).zip(order) {
            tasks[*number].place = Some(Place { list, position });
        }
    }
    tasks
}

fn ids(tasks: &[Task], numbers: &[usize]) -> Vec<TaskId> {
    numbers.iter().map(|number| tasks[*number].id).collect()
}

fn requested(tasks: &[Task], orders: [&[usize]; 2]) -> Vec<RequestedList> {
    let current = super::orders(tasks);
    let lists = lists().into_iter().zip(orders);
    let lists = lists.map(|(key, order)| RequestedList {
        key,
        etag: etag(current.get(&key).map_or(&[], Vec::as_slice)),
        tasks: ids(tasks, order),
    });
    lists.collect()
}

/// The numbers of the tasks in the two lists after a change.
fn numbers(current: &Lists, places: &Places) -> [Vec<usize>; 2] {
    let orders = current.orders_with(places);
    lists().map(|list| {
        let order = orders.get(&list).cloned().unwrap_or_default();
        let number = |id: &TaskId| usize::try_from(id.0.as_u128()).unwrap();
        order.iter().map(number).collect()
    })
}

fn target(courier: Option<usize>) -> Target {
    Target {
        courier_id: courier.map(|number| couriers()[number]),
        day: Some(DAY),
        position: None,
        is_single: false,
    }
}

/// The lists after moves of tasks that are expected to have no courier, and those left.
fn assigned(tasks: &[Task], moves: &[usize], target: Target) -> ([Vec<usize>; 2], Vec<TaskId>) {
    let current = Lists::new(lists(), tasks.iter().cloned());
    let moves = moves.iter().map(|number| {
        let expected = tasks[*number].place.map(|place| place.list.courier_id);
        Move {
            task: tasks[*number].id,
            expected: Expected::Courier(expected),
        }
    });
    let list_of = |task: &Task| target.list_of(task, DAY, &TimeZone::UTC);
    let (places, left) = current.assign(&moves.collect::<Vec<_>>(), &target, list_of);
    (numbers(&current, &places), left)
}

#[test]
fn lists_are_replaced_together_and_a_task_that_is_left_out_is_in_none() {
    let tasks = placed(tasks(&deliveries(3)), [&[0, 1, 2, 3], &[4]]);
    let current = Lists::new(lists(), tasks.clone());

    let places = current.replace(&requested(&tasks, [&[4, 1, 0], &[5, 3]]));

    let places = places.unwrap();
    assert_eq!(numbers(&current, &places), [vec![4, 1, 0], vec![5, 3]]);
    assert_eq!(places.get(&tasks[2].id), Some(&None));
    assert!(!places.contains_key(&tasks[1].id), "it stays in its place");
}

#[test]
fn a_list_that_is_not_as_the_request_says_is_named() {
    let tasks = placed(tasks(&deliveries(2)), [&[0, 1], &[2]]);
    let current = Lists::new(lists(), tasks.clone());
    let [first, second] = lists();

    let mut stale = requested(&tasks, [&[1, 0], &[2]]);
    stale[1].etag = etag(&ids(&tasks, &[3, 2]));
    assert_eq!(current.replace(&stale), Err([second].into()));
    let mut as_it_is = requested(&tasks, [&[0, 1], &[2]]);
    as_it_is[1].etag = "another".to_owned();
    assert_eq!(current.replace(&as_it_is), Ok(Places::new()), "repeated");
    let only_second = requested(&tasks, [&[], &[2, 0]]).split_off(1);
    assert_eq!(current.replace(&only_second), Err([first].into()));
}

#[test]
fn a_settled_task_keeps_its_place_whatever_is_requested() {
    let mut tasks = placed(tasks(&deliveries(3)), [&[0, 1, 2, 3], &[4]]);
    tasks[1].state = TaskState::Done;
    let current = Lists::new(lists(), tasks.clone());

    for (orders, expected) in [
        ([&[3, 2, 0][..], &[4][..]], [vec![3, 1, 2, 0], vec![4]]),
        ([&[0, 2, 1, 3], &[4]], [vec![0, 1, 2, 3], vec![4]]),
        ([&[], &[1, 4]], [vec![1], vec![4]]),
    ] {
        let places = current.replace(&requested(&tasks, orders)).unwrap();
        assert_eq!(numbers(&current, &places), expected);
    }
    let (lists, left) = assigned(&tasks, &[1], target(Some(1)));
    assert_eq!(
        (lists, left),
        ([vec![0, 1, 2, 3], vec![4]], ids(&tasks, &[1]))
    );
}

#[test]
fn the_tasks_of_a_delivery_move_together_the_pickup_first() {
    let tasks = placed(tasks(&deliveries(3)), [&[4, 5], &[]]);
    let at_second = Target {
        position: Some(1),
        ..target(Some(0))
    };
    let single = Target {
        is_single: true,
        ..target(Some(1))
    };

    for (moves, target, expected) in [
        (&[1][..], target(Some(0)), [vec![4, 5, 0, 1], vec![]]),
        (&[3, 0], target(Some(1)), [vec![4, 5], vec![2, 3, 0, 1]]),
        (&[0, 1], at_second, [vec![4, 0, 1, 5], vec![]]),
        (&[5], target(None), [vec![], vec![]]),
        (&[5], single, [vec![4], vec![5]]),
        (&[4], target(Some(0)), [vec![4, 5], vec![]]),
    ] {
        assert_eq!(
            assigned(&tasks, moves, target),
            (expected, vec![]),
            "{moves:?}"
        );
    }
    let mut picked = tasks.clone();
    picked[4].state = TaskState::Done;
    let moved = assigned(&picked, &[5], target(Some(1)));
    assert_eq!(moved, ([vec![4], vec![5]], vec![]));
}

#[test]
fn a_delivery_of_which_a_task_has_another_courier_than_expected_is_left() {
    let tasks = placed(tasks(&deliveries(2)), [&[0, 1, 2], &[3]]);
    let current = Lists::new(lists(), tasks.clone());
    let [first, _] = couriers();
    let target = target(Some(1));
    let list_of = |task: &Task| target.list_of(task, DAY, &TimeZone::UTC);

    for (task, expected) in [(0, None), (2, Some(first)), (3, None)] {
        let moves = [Move {
            task: tasks[task].id,
            expected: Expected::Courier(expected),
        }];
        let (places, left) = current.assign(&moves, &target, list_of);
        assert_eq!((places, left), (Places::new(), ids(&tasks, &[task])));
    }
    let anything = [Move {
        task: tasks[0].id,
        expected: Expected::Anything,
    }];
    let (places, left) = current.assign(&anything, &target, list_of);
    let expected = [vec![2], vec![3, 0, 1]];
    assert_eq!((numbers(&current, &places), left), (expected, vec![]));
    // The list that it is in was not locked.
    let unlocked = Lists::new(lists().into_iter().skip(1), tasks.clone());
    let moves = [Move {
        task: tasks[0].id,
        expected: Expected::Courier(Some(first)),
    }];
    let (places, left) = unlocked.assign(&moves, &target, list_of);
    assert_eq!((places, left), (Places::new(), ids(&tasks, &[0])));
}

#[test]
fn a_position_is_that_in_the_list_as_it_is() {
    let tasks = placed(tasks(&deliveries(4)), [&[0, 1, 2, 3, 4, 5, 6, 7], &[]]);
    for (moves, position, expected) in [
        (&[0][..], 3, [2, 0, 1, 3, 4, 5, 6, 7]),
        (&[0, 2], 6, [4, 5, 0, 1, 2, 3, 6, 7]),
        (&[2, 0], 6, [4, 5, 2, 3, 0, 1, 6, 7]),
        (&[6], 1, [0, 6, 7, 1, 2, 3, 4, 5]),
        (&[2], 2, [0, 1, 2, 3, 4, 5, 6, 7]),
        (&[2], 3, [0, 1, 2, 3, 4, 5, 6, 7]),
        (&[0], 8, [2, 3, 4, 5, 6, 7, 0, 1]),
        (&[0], usize::MAX, [2, 3, 4, 5, 6, 7, 0, 1]),
    ] {
        let target = Target {
            position: Some(position),
            ..target(Some(0))
        };
        let (lists, left) = assigned(&tasks, moves, target);
        assert_eq!(
            (lists, left),
            ([expected.to_vec(), vec![]], vec![]),
            "{moves:?} to {position}"
        );
    }
}

#[test]
fn each_named_task_has_its_own_expected_courier() {
    let tasks = placed(tasks(&deliveries(1)), [&[0], &[]]);
    let current = Lists::new(lists(), tasks.clone());
    let [first, _] = couriers();
    let target = target(Some(1));
    let list_of = |task: &Task| target.list_of(task, DAY, &TimeZone::UTC);
    let moves = |of_pickup, of_dropoff| {
        let expected = [Expected::Courier(of_pickup), Expected::Courier(of_dropoff)];
        let moves = expected.into_iter().zip(&tasks);
        let moves = moves.map(|(expected, task)| Move {
            task: task.id,
            expected,
        });
        moves.collect::<Vec<_>>()
    };

    let (places, left) = current.assign(&moves(Some(first), None), &target, list_of);
    assert_eq!(
        (numbers(&current, &places), left),
        ([vec![], vec![0, 1]], vec![])
    );
    let (places, left) = current.assign(&moves(Some(first), Some(first)), &target, list_of);
    assert_eq!((places, left), (Places::new(), ids(&tasks, &[0, 1])));
}

#[test]
fn without_a_day_a_task_goes_to_the_first_of_its_window_that_is_not_past() {
    let mut task = fixture::delivery(1000).pickup;
    let target = Target {
        day: None,
        ..target(Some(0))
    };
    for (hours, expected) in [(-30, DAY), (1, DAY), (23, DAY.tomorrow().unwrap())] {
        let today: Timestamp = "2026-12-01T10:00:00Z".parse().unwrap();
        let after = today + SignedDuration::from_hours(hours);
        task.window = TimeWindow {
            after,
            before: after + SignedDuration::from_hours(80),
        };
        let list = target.list_of(&task, DAY, &TimeZone::UTC).unwrap();
        assert_eq!(list.day, expected, "{hours}");
    }
}

/// Two requests for lists, or for a target, of six tasks.
#[derive(Clone, Debug)]
enum Change {
    Replace([Vec<usize>; 2]),
    Assign(Vec<usize>, Option<usize>, bool),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let tasks = || sample::subsequence((0..6).collect::<Vec<_>>(), 0..=6).prop_shuffle();
    let replace = (tasks(), 0_usize..=6).prop_map(|(order, cut)| {
        let (first, second) = order.split_at(cut.min(order.len()));
        Change::Replace([first.to_vec(), second.to_vec()])
    });
    let assign = (tasks(), option::of(0_usize..2), any::<bool>());
    let assign = assign.prop_map(|(tasks, courier, single)| Change::Assign(tasks, courier, single));
    collection::vec(prop_oneof![replace, assign], 1..8)
}

proptest! {
    #[test]
    fn after_any_changes_a_task_is_in_one_place_at_most_and_positions_are_distinct(
        changes in changes(), settled in collection::vec(any::<bool>(), 6),
    ) {
        let mut tasks = placed(tasks(&deliveries(3)), [&[0, 1], &[2]]);
        for (task, is_settled) in tasks.iter_mut().zip(&settled) {
            if *is_settled {
                task.state = TaskState::Done;
            }
        }
        let before = tasks.clone();
        for change in changes {
            let current = Lists::new(lists(), tasks.clone());
            let places = match change {
                Change::Replace([first, second]) => {
                    let requested = requested(&tasks, [&first, &second]);
                    current.replace(&requested).unwrap()
                }
                Change::Assign(moves, courier, is_single) => {
                    let moves = moves.iter().map(|number| {
                        let expected = tasks[*number].place.map(|place| place.list.courier_id);
                        Move { task: tasks[*number].id, expected: Expected::Courier(expected) }
                    });
                    let target = Target { is_single, ..target(courier) };
                    let list_of = |task: &Task| target.list_of(task, DAY, &TimeZone::UTC);
                    current.assign(&moves.collect::<Vec<_>>(), &target, list_of).0
                }
            };
            for task in &mut tasks {
                task.place = places.get(&task.id).copied().unwrap_or(task.place);
            }
            let distinct: BTreeSet<_> = tasks
                .iter()
                .filter_map(|task| task.place.map(|place| (place.list, place.position)))
                .collect();
            prop_assert_eq!(distinct.len(), tasks.iter().filter(|task| task.place.is_some()).count());
        }
        for (before, after) in before.iter().zip(&tasks).filter(|(task, _)| task.is_settled()) {
            let list = |task: &Task| task.place.map(|place| place.list);
            prop_assert_eq!(list(before), list(after));
        }
    }
}
