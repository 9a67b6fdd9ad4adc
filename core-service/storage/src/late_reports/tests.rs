//! What late reports need of the history, on both databases.

use domain::{
    courier::ListKey,
    device_clock::Occurrence,
    id::ApiClientId,
    task::{Actor, TimeWindow},
    task_event::{Remarks, Transition},
};
use jiff::{SignedDuration, civil::Date};

use super::*;
use crate::{Storage, fixture};

fn at(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

fn event(
    task_id: TaskId,
    courier_id: Option<CourierId>,
    minutes: i64,
    transition: Transition,
) -> TaskEvent {
    TaskEvent {
        task_id,
        by: Actor::Courier,
        api_client_id: Some(ApiClientId::new()),
        courier_id,
        created_at: at(minutes),
        occurrence: Occurrence {
            at: at(minutes),
            is_clamped: false,
        },
        transition,
    }
}

fn conflict(code: Option<&str>) -> Transition {
    Transition::Conflict {
        reason: code.map(|code| code.parse().unwrap()),
        remarks: Remarks::default(),
    }
}

async fn insert_all(storage: &Storage, store_id: StoreId, events: &[TaskEvent]) {
    for event in events {
        let event = event.clone();
        let write = storage
            .write(move |transaction| async move { insert(&transaction, store_id, &event).await });
        write.await.unwrap();
    }
}

#[tokio::test]
async fn the_placements_since_an_instant_are_read_with_the_one_before() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (store_id, task_id) = (StoreId::new(), TaskId::new());
        let list = ListKey {
            day: Date::constant(2026, 12, 1),
            courier_id: CourierId::new(),
        };
        let window = TimeWindow {
            after: at(0),
            before: at(1),
        };
        let (from, to) = (window, window);
        let assigned = || Transition::Assigned(Some(list));
        let transitions = [
            (1, assigned()),
            (2, Transition::Started),
            (3, Transition::Unassigned),
            (4, assigned()),
            (5, Transition::Reopened),
            // On behalf of a courier: in no list.
            (6, Transition::Rescheduled { from, to }),
        ];
        let events = transitions.map(|(minutes, transition)| {
            let courier_id = (minutes == 6).then_some(list.courier_id);
            event(task_id, courier_id, minutes, transition)
        });
        insert_all(&storage, store_id, &events).await;
        let of_other_task = event(TaskId::new(), None, 7, assigned());
        insert_all(&storage, store_id, &[of_other_task]).await;
        let of_other_store = event(task_id, None, 7, assigned());
        insert_all(&storage, StoreId::new(), &[of_other_store]).await;

        let all =
            [(1, Some(list)), (3, None), (4, Some(list)), (6, None)].map(|(minutes, list)| {
                Placement {
                    at: at(minutes),
                    list,
                }
            });
        for (since, expected) in [
            (0, &all[..]),
            (1, &all[..]),
            (2, &all[..]),
            (3, &all[..]),
            (4, &all[1..]),
            (5, &all[2..]),
            (9, &all[3..]),
        ] {
            let found = placements(storage.reader(), store_id, task_id, at(since)).await;
            assert_eq!(found.unwrap(), expected, "{since}");
        }
        let found = placements(storage.reader(), store_id, TaskId::new(), at(0)).await;
        assert_eq!(found.unwrap(), []);
    }
}

#[tokio::test]
async fn a_conflict_is_the_same_only_of_a_courier_and_a_command_since_the_state() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (store_id, task_id) = (StoreId::new(), TaskId::new());
        let (ada, ben) = (CourierId::new(), CourierId::new());
        let done = Transition::Done(Remarks::default());
        let events = [
            event(task_id, Some(ada), 1, conflict(None)),
            event(task_id, Some(ben), 2, done),
            event(task_id, Some(ada), 3, conflict(Some("LATE"))),
            event(task_id, None, 4, Transition::Cancelled),
        ];
        insert_all(&storage, store_id, &events).await;

        for (courier, code, since, expected) in [
            (ada, None, 0, true),
            (ada, None, 1, false),
            (ada, Some("REFUSED"), 1, true),
            (ada, Some("LATE"), 3, false),
            (ben, None, 0, false),
            (ben, Some("LATE"), 0, false),
        ] {
            let event = event(task_id, Some(courier), 9, conflict(code));
            let has_conflict = has_conflict(
                storage.reader(),
                store_id,
                &event,
                code.is_some(),
                at(since),
            );
            assert_eq!(has_conflict.await.unwrap(), expected, "{code:?} {since}");
        }
        for (minutes, expected) in [(1, Some(ada)), (2, Some(ben)), (4, None), (5, None)] {
            let found = courier_at(storage.reader(), store_id, task_id, at(minutes)).await;
            assert_eq!(found.unwrap(), expected, "{minutes}");
        }
    }
}
