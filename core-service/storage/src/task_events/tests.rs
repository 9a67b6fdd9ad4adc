//! The history of tasks, written and read on both databases.

use domain::{courier::ListKey, device_clock::DeviceTimes, task::Actor, task_event::TaskReport};
use jiff::{SignedDuration, civil::Date};

use super::*;
use crate::{Storage, fixture};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn at(minutes: i64) -> Timestamp {
    NOW + SignedDuration::from_mins(minutes)
}

fn window(minutes: i64) -> TimeWindow {
    TimeWindow {
        after: at(minutes),
        before: at(minutes + 1),
    }
}

/// One event of each kind, with everything that it can have.
fn every_event(task_id: TaskId) -> Vec<TaskEvent> {
    let notes = Some("Left at Zoé's door".to_owned());
    let list = ListKey {
        day: Date::constant(2026, 12, 1),
        courier_id: CourierId::new(),
    };
    let transitions = [
        Transition::Started,
        Transition::Failed {
            reason: "DOG_BITES".parse().unwrap(),
            notes: notes.clone(),
        },
        Transition::Rescheduled {
            from: window(1),
            to: window(5),
        },
        Transition::Done(Remarks {
            notes: notes.clone(),
            contact_name: Some("Zoé".to_owned()),
        }),
        Transition::Reopened,
        Transition::Cancelled,
        Transition::Assigned(Some(list)),
        Transition::Unassigned,
        Transition::IncidentReported {
            reason: None,
            notes: notes.clone(),
        },
        Transition::IncidentClosed {
            notes: notes.clone(),
        },
        Transition::Updated,
        Transition::Conflict {
            reason: None,
            remarks: Remarks {
                notes,
                contact_name: Some("Zoé".to_owned()),
            },
        },
    ];
    let events = transitions.into_iter().enumerate();
    let events = events.map(|(number, transition)| TaskEvent {
        task_id,
        by: Actor::ALL[number % Actor::ALL.len()],
        api_client_id: Some(ApiClientId::new()),
        courier_id: Some(CourierId::new())
            .filter(|_| number % 2 == 1 && transition.name() != TransitionName::Assigned),
        created_at: at(10) + SignedDuration::from_micros(i64::try_from(number).unwrap()),
        occurrence: Occurrence {
            at: at(9),
            is_clamped: number % 2 == 0,
        },
        transition,
    });
    events.collect()
}

async fn insert(storage: &Storage, store_id: StoreId, events: &[TaskEvent]) {
    let events = events.to_vec();
    let insert = storage.write(move |transaction| async move {
        let insert = insertion(store_id, &events);
        insert.exec_without_returning(&transaction).await?;
        Ok::<_, Error>(())
    });
    insert.await.unwrap();
}

async fn all(storage: &Storage, store_id: StoreId, task_id: TaskId) -> Vec<TaskEvent> {
    let (mut events, mut after) = (Vec::new(), NOW);
    loop {
        let page = list(storage.reader(), store_id, task_id, after, 2).await;
        let (page, next) = page.unwrap();
        assert!(page.len() <= 2);
        events.extend(page);
        match next {
            Some(last) => after = last,
            None => return events,
        }
    }
}

#[tokio::test]
async fn the_events_of_a_task_are_read_in_pages_as_they_were_inserted() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (store_id, other_store) = (StoreId::new(), StoreId::new());
        let [task_id, other] = [(); 2].map(|()| TaskId::new());
        let events = every_event(task_id);
        for (store_id, events) in [
            (store_id, &events),
            (store_id, &every_event(other)),
            (other_store, &every_event(task_id)),
        ] {
            insert(&storage, store_id, events).await;
        }

        assert_eq!(all(&storage, store_id, task_id).await, events);
        assert_eq!(all(&storage, store_id, TaskId::new()).await, []);
        let page = list(storage.reader(), store_id, task_id, NOW, 0).await;
        assert_eq!(page.unwrap(), (vec![], Some(NOW)));
    }
}

#[tokio::test]
async fn the_newest_events_of_some_kinds_are_read_in_their_order() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (store_id, task_id) = (StoreId::new(), TaskId::new());
        let mut events = every_event(task_id);
        insert(&storage, store_id, &events).await;
        insert(&storage, store_id, &every_event(TaskId::new())).await;
        let kinds = [TransitionName::Started, TransitionName::Done];
        events.retain(|event| kinds.contains(&event.transition.name()));
        assert!(events.len() >= 2);

        let read = async |limit| {
            let newest = newest(storage.reader(), store_id, task_id, &kinds, limit).await;
            newest.unwrap()
        };

        assert_eq!(read(9).await, events);
        assert_eq!(read(1).await, events[events.len() - 1..]);
    }
}

/// Changes a column of an event, as only a later version does.
async fn set(storage: &Storage, event: &TaskEvent, column: &str, value: &'static str) {
    let update =
        format!("UPDATE task_events SET {column} = $1 WHERE task_id = $2 AND created_at = $3");
    let created_at = Instant::from(event.created_at);
    let values = [value.into(), event.task_id.0.into(), created_at.into()];
    let write = storage
        .write(move |transaction| async move { rows::run(&transaction, &update, values).await });
    write.await.unwrap();
}

#[tokio::test]
async fn an_event_of_a_later_version_is_left_out() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (store_id, task_id) = (StoreId::new(), TaskId::new());
        let mut events = every_event(task_id);
        insert(&storage, store_id, &events).await;
        for (column, value) in [
            ("transition", "teleported"),
            ("reason", "a dog"),
            ("actor", "robot"),
        ] {
            set(&storage, &events[0], column, value).await;
            events.remove(0);
            assert_eq!(all(&storage, store_id, task_id).await, events, "{column}");
        }
    }
}

#[tokio::test]
async fn erased_events_keep_what_happened_and_when() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let store_id = StoreId::new();
        let [first, second, other] = [(); 3].map(|()| TaskId::new());
        let [mut expected, mut of_second, others] = [first, second, other].map(every_event);
        for events in [&expected, &of_second, &others] {
            insert(&storage, store_id, events).await;
        }
        set(&storage, &expected[1], "reason", "a dog's bite").await;
        set(&storage, &of_second[1], "reason", "NOT_AT_HOME").await;

        let write = storage.write(move |transaction| async move {
            erase(&transaction, store_id, [first.0, second.0]).await
        });
        write.await.unwrap();

        for (events, code) in [(&mut expected, "OTHER"), (&mut of_second, "NOT_AT_HOME")] {
            for event in events {
                event.api_client_id = None;
                event.courier_id = None;
                match &mut event.transition {
                    Transition::Assigned(list) => *list = None,
                    Transition::Done(remarks) | Transition::Conflict { remarks, .. } => {
                        *remarks = Remarks::default();
                    }
                    Transition::Failed { reason, notes } => {
                        *reason = code.parse().unwrap();
                        *notes = None;
                    }
                    Transition::IncidentReported { notes, .. }
                    | Transition::IncidentClosed { notes } => *notes = None,
                    _ => {}
                }
            }
        }
        assert_eq!(all(&storage, store_id, first).await, expected);
        assert_eq!(all(&storage, store_id, second).await, of_second);
        assert_eq!(all(&storage, store_id, other).await, others);
    }
}

#[tokio::test]
async fn a_change_of_a_delivery_inserts_the_events_of_its_tasks() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let before = fixture::delivery(StoreId::new(), NOW);
        let mut cancelled = before.clone();
        cancelled.cancel(Actor::Shop, at(1)).unwrap();
        let report = TaskReport {
            by: Actor::Shop,
            api_client_id: ApiClientId::new(),
            courier_id: Some(CourierId::new()),
            times: DeviceTimes::default(),
            remarks: Remarks::default(),
        };
        let history = report.events(&before, &cancelled, at(1));
        let store_id = before.store_id;
        let insert = storage.insert_delivery(fixture::new_delivery(before.clone()));
        insert.await.unwrap();

        let changes = crate::deliveries::changes(&before, &cancelled, &history).unwrap();
        let write = storage.write(move |transaction| async move {
            let query = crate::entity::store::Entity::find().into_query();
            changes.make_and_query(&transaction, query).await
        });
        write.await.unwrap();

        let mut stored = all(&storage, store_id, before.pickup.id).await;
        stored.extend(all(&storage, store_id, before.dropoff.id).await);
        let tasks = [&before.pickup, &before.dropoff].map(|task| task.id);
        assert_eq!(
            history
                .iter()
                .map(|event| event.task_id)
                .collect::<Vec<_>>(),
            tasks
        );
        assert_eq!(stored, history);
    }
}
