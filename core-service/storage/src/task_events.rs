//! The history of tasks: inserted with the changes, read by task in the order of the changes.

#[cfg(test)]
mod tests;

use domain::{
    device_clock::Occurrence,
    id::{ApiClientId, CourierId, StoreId, TaskId},
    task::{FailureReason, TimeWindow},
    task_event::{Remarks, TaskEvent, Transition, TransitionName},
};
use sea_orm::{InsertMany, sea_query::ExprTrait as _};

use super::{
    entity::{
        Instant,
        task_event::{ActiveModel, Column, Entity, Model},
    },
    pages::{self, Start},
    tasks::list_key,
};
use crate::prelude::*;

/// In place of the client that reported an event or an incident.
pub(super) const ERASED_CLIENT: Uuid = Uuid::nil();

/// The statement that inserts events of a store's tasks.
pub(super) fn insertion(store_id: StoreId, events: &[TaskEvent]) -> InsertMany<ActiveModel> {
    Entity::insert_many(events.iter().map(|event| row(store_id, event)))
}

/// The row of an event of a store's task.
pub(super) fn row(store_id: StoreId, event: &TaskEvent) -> ActiveModel {
    let mut row = ActiveModel {
        store_id: Set(store_id.0),
        task_id: Set(event.task_id.0),
        created_at: Set(event.created_at.into()),
        transition: Set(event.transition.name().as_str().to_owned()),
        actor: Set(event.by.as_str().to_owned()),
        api_client_id: Set(event.api_client_id.map_or(ERASED_CLIENT, |id| id.0)),
        occurred_at: Set(event.occurrence.at.into()),
        is_clamped: Set(event.occurrence.is_clamped),
        courier_id: Set(event.courier_id.map(|id| id.0)),
        ..Default::default()
    };
    match event.transition.clone() {
        Transition::Started
        | Transition::Cancelled
        | Transition::Reopened
        | Transition::Unassigned
        | Transition::Updated => {}
        Transition::Assigned(list) => {
            // Dispatch assigns tasks, on behalf of no courier.
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
        Transition::IncidentReported { reason, notes } => {
            row.reason = Set(reason.map(|reason| reason.as_str().to_owned()));
            row.notes = Set(notes);
        }
        Transition::IncidentClosed { notes } => row.notes = Set(notes),
        Transition::Conflict { reason, remarks } => {
            row.reason = Set(reason.map(|reason| reason.as_str().to_owned()));
            row.notes = Set(remarks.notes);
            row.contact_name = Set(remarks.contact_name);
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

/// The newest events of a store's task that are of some kinds, in the order of the changes.
pub async fn newest(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    task_id: TaskId,
    kinds: &[TransitionName],
    limit: u64,
) -> Result<Vec<TaskEvent>, Error> {
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.eq(task_id.0))
        .filter(Column::Transition.is_in(kinds.iter().map(|kind| kind.as_str())))
        .order_by_desc(Column::CreatedAt)
        .limit(limit)
        .all(connection)
        .await?;
    let events = rows
        .into_iter()
        .rev()
        .filter_map(|row| event(row).transpose());
    events.collect()
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
        TransitionName::IncidentReported | TransitionName::Conflict => {
            let Ok(reason) = row.reason.as_deref().map(str::parse).transpose() else {
                return Ok(None);
            };
            let (notes, contact_name) = (row.notes, row.contact_name);
            if name == TransitionName::IncidentReported {
                Transition::IncidentReported { reason, notes }
            } else {
                let remarks = Remarks {
                    notes,
                    contact_name,
                };
                Transition::Conflict { reason, remarks }
            }
        }
        TransitionName::IncidentClosed => Transition::IncidentClosed { notes: row.notes },
        TransitionName::Updated => Transition::Updated,
    };
    let api_client_id = Some(row.api_client_id).filter(|id| *id != ERASED_CLIENT);
    let is_assignment = name == TransitionName::Assigned;
    Ok(Some(TaskEvent {
        task_id: TaskId(row.task_id),
        by,
        api_client_id: api_client_id.map(ApiClientId),
        courier_id: row.courier_id.filter(|_| !is_assignment).map(CourierId),
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
