//! The history of tasks: inserted with the changes, read by task in the order of the changes.

use domain::{
    device_clock::Occurrence,
    id::{ApiClientId, StoreId, TaskId},
    task::{FailureReason, TimeWindow},
    task_event::{Remarks, TaskEvent, Transition, TransitionName},
};
use sea_orm::{InsertMany, sea_query::ExprTrait as _};

use super::{
    delivery_rows::list_key,
    entity::{
        instant::Instant,
        task_event::{ActiveModel, Column, Entity, Model},
    },
    pages::{self, Start},
};
use crate::prelude::*;

/// In place of the client that reported an event.
const ERASED_CLIENT: Uuid = Uuid::nil();

/// The statement that inserts events of a store's tasks.
pub(super) fn insertion(store_id: StoreId, events: &[TaskEvent]) -> InsertMany<ActiveModel> {
    Entity::insert_many(events.iter().map(|event| row(store_id, event)))
}

fn row(store_id: StoreId, event: &TaskEvent) -> ActiveModel {
    let mut row = ActiveModel {
        store_id: Set(store_id.0),
        task_id: Set(event.task_id.0),
        created_at: Set(event.created_at.into()),
        transition: Set(event.transition.name().as_str().to_owned()),
        actor: Set(event.by.as_str().to_owned()),
        api_client_id: Set(event.api_client_id.map_or(ERASED_CLIENT, |id| id.0)),
        occurred_at: Set(event.occurrence.at.into()),
        is_clamped: Set(event.occurrence.is_clamped),
        ..Default::default()
    };
    match event.transition.clone() {
        Transition::Started
        | Transition::Cancelled
        | Transition::Reopened
        | Transition::Unassigned => {}
        Transition::Assigned(list) => {
            row.courier_id = Set(list.map(|list| list.courier_id.0));
            row.list_day = Set(list.map(|list| list.day.to_string()));
        }
        Transition::Done(remarks) => {
            row.notes = Set(remarks.notes);
            row.contact_name = Set(remarks.contact_name);
        }
        Transition::Failed { reason, notes } => {
            row.reason = Set(Some(reason.as_str().to_owned()));
            row.notes = Set(notes);
        }
        Transition::Rescheduled { from, to } => {
            row.after = Set(Some(to.after.into()));
            row.before = Set(Some(to.before.into()));
            row.previous_after = Set(Some(from.after.into()));
            row.previous_before = Set(Some(from.before.into()));
        }
    }
    row
}

/// A page of the events of a store's task after an instant, in the order of the changes, and when the last one of the
/// page was, if more follow.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    task_id: TaskId,
    after: Timestamp,
    size: u32,
) -> Result<(Vec<TaskEvent>, Option<Timestamp>), Error> {
    let after = Instant::from(after);
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.eq(task_id.0))
        .filter(Column::CreatedAt.gt(after))
        .order_by_asc(Column::CreatedAt)
        .limit(pages::limit(size))
        .all(connection)
        .await?;
    let (rows, has_more) = pages::cut(rows, Start::Newest, size);
    let last = rows.last().map_or(after, |row| row.created_at);
    let last = has_more.then(|| last.try_into()).transpose()?;
    let events = rows.into_iter().filter_map(|row| event(row).transpose());
    Ok((events.collect::<Result<_, _>>()?, last))
}

/// Removes personal data from the events of tasks, also from those of later versions. The client is such data: its events
/// say where a courier was, and when.
pub(super) async fn erase(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    tasks: impl IntoIterator<Item = Uuid>,
) -> Result<(), Error> {
    let is_unknown = Column::Reason.is_not_in(FailureReason::KNOWN);
    let reason =
        Expr::case(is_unknown.clone(), FailureReason::OTHER).finally(Column::Reason.into_expr());
    let has_something = is_unknown
        .or(Column::Notes.is_not_null())
        .or(Column::ContactName.is_not_null())
        .or(Column::ApiClientId.ne(ERASED_CLIENT))
        .or(Column::CourierId.is_not_null());
    let update = Entity::update_many()
        .col_expr(Column::Notes, Expr::value(None::<String>))
        .col_expr(Column::ContactName, Expr::value(None::<String>))
        .col_expr(Column::Reason, reason.into())
        .col_expr(Column::ApiClientId, Expr::value(ERASED_CLIENT))
        .col_expr(Column::CourierId, Expr::value(None::<Uuid>))
        .col_expr(Column::ListDay, Expr::value(None::<String>))
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.is_in(tasks))
        .filter(has_something);
    update.exec(transaction).await?;
    Ok(())
}

/// None for a transition, an actor or a reason of a later version, after a rollback.
fn event(row: Model) -> Result<Option<TaskEvent>, Error> {
    let (Ok(name), Ok(by)) = (row.transition.parse(), row.actor.parse()) else {
        return Ok(None);
    };
    let transition = match name {
        TransitionName::Assigned => Transition::Assigned(list_key(
            "task_events",
            row.courier_id,
            row.list_day.as_deref(),
        )?),
        TransitionName::Unassigned => Transition::Unassigned,
        TransitionName::Started => Transition::Started,
        TransitionName::Done => Transition::Done(Remarks {
            notes: row.notes,
            contact_name: row.contact_name,
        }),
        TransitionName::Failed => {
            let Ok(reason) = row.reason.unwrap_or_default().parse() else {
                return Ok(None);
            };
            let notes = row.notes;
            Transition::Failed { reason, notes }
        }
        TransitionName::Cancelled => Transition::Cancelled,
        TransitionName::Rescheduled => Transition::Rescheduled {
            from: window(row.previous_after, row.previous_before)?,
            to: window(row.after, row.before)?,
        },
        TransitionName::Reopened => Transition::Reopened,
    };
    let api_client_id = Some(row.api_client_id).filter(|id| *id != ERASED_CLIENT);
    Ok(Some(TaskEvent {
        task_id: TaskId(row.task_id),
        by,
        api_client_id: api_client_id.map(ApiClientId),
        created_at: row.created_at.try_into()?,
        occurrence: Occurrence {
            at: row.occurred_at.try_into()?,
            is_clamped: row.is_clamped,
        },
        transition,
    }))
}

fn window(after: Option<Instant>, before: Option<Instant>) -> Result<TimeWindow, Error> {
    let missing = || Error::inconsistent("task_events", "a reschedule without a window");
    Ok(TimeWindow {
        after: after.ok_or_else(missing)?.try_into()?,
        before: before.ok_or_else(missing)?.try_into()?,
    })
}

#[cfg(test)]
mod tests {
    use domain::{
        courier::ListKey, device_clock::DeviceTimes, id::CourierId, task::Actor,
        task_event::TaskReport,
    };
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
                notes,
                contact_name: Some("Zoé".to_owned()),
            }),
            Transition::Reopened,
            Transition::Cancelled,
            Transition::Assigned(Some(list)),
            Transition::Unassigned,
        ];
        let events = transitions.into_iter().enumerate();
        let events = events.map(|(number, transition)| TaskEvent {
            task_id,
            by: Actor::ALL[number % Actor::ALL.len()],
            api_client_id: Some(ApiClientId::new()),
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

    /// Changes a column of an event, as only a later version does.
    async fn set(storage: &Storage, event: &TaskEvent, column: &str, value: &'static str) {
        let update =
            format!("UPDATE task_events SET {column} = $1 WHERE task_id = $2 AND created_at = $3");
        let created_at = Instant::from(event.created_at);
        let values = [value.into(), event.task_id.0.into(), created_at.into()];
        let write = storage.write(move |transaction| async move {
            rows::run(&transaction, &update, values).await
        });
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
                    match &mut event.transition {
                        Transition::Assigned(list) => *list = None,
                        Transition::Done(remarks) => *remarks = Remarks::default(),
                        Transition::Failed { reason, notes } => {
                            *reason = code.parse().unwrap();
                            *notes = None;
                        }
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
}
