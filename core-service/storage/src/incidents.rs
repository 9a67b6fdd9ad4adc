//! Incidents of tasks: written with the task and its history, found by task, by time and by id.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use domain::{
    delivery::Delivery,
    device_clock::Occurrence,
    id::{ApiClientId, DeliveryId, IncidentId, StoreId, TaskId},
    incident::{Closing, Incident, IncidentContent},
    task::{FailureReason, Task},
    task_event::TaskEvent,
};
use sea_orm::sea_query::UpdateStatement;

use super::{
    entity::{
        Instant, MetadataJson,
        incident::{ActiveModel, Column, Entity, Model},
    },
    pages::{self, Start},
    task_changes,
    task_events::{self, ERASED_CLIENT},
    tasks::changed_columns,
};
use crate::prelude::*;

/// Which incidents are listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// Of this task of a store; of all stores if absent.
    pub task: Option<(StoreId, TaskId)>,
    pub open_only: bool,
}

/// A page of incidents, and whether more follow.
pub async fn list(
    connection: &impl ConnectionTrait,
    filter: Filter,
    start: Start,
    size: u32,
) -> Result<(Vec<Incident>, bool), Error> {
    let query = Entity::find()
        .apply_if(filter.task, |query, (store_id, task_id)| {
            let query = query.filter(Column::StoreId.eq(store_id.0));
            query.filter(Column::TaskId.eq(task_id.0))
        })
        .apply_if(filter.open_only.then_some(()), |query, ()| {
            query.filter(Column::ClosedAt.is_null())
        });
    let query = pages::start_at(query, Column::CreatedAt, Column::Id, start);
    let (rows, has_more) = pages::read(connection, query, start, size).await?;
    Ok((rows.into_iter().filter_map(known).collect(), has_more))
}

/// The incident of a row, unless only a later version can read it.
fn known(row: Model) -> Option<Incident> {
    let logged = |error: &Error| tracing::error!(%error, "an incident is left out");
    Incident::try_from(row).inspect_err(logged).ok()
}

/// An incident of any store.
pub async fn find(
    connection: &impl ConnectionTrait,
    id: IncidentId,
) -> Result<Option<Incident>, Error> {
    rows::first(connection, Entity::find().filter(Column::Id.eq(id.0))).await
}

/// Those of these incidents that exist, unless only a later version can read them.
pub async fn find_all(
    connection: &impl ConnectionTrait,
    keys: impl IntoIterator<Item = (StoreId, IncidentId)>,
) -> Result<Vec<Incident>, Error> {
    let (stores, ids): (Vec<_>, Vec<_>) = keys
        .into_iter()
        .map(|(store_id, id)| (store_id.0, id.0))
        .unzip();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let query = Entity::find()
        .filter(Column::StoreId.is_in(padded(stores)))
        .filter(Column::Id.is_in(padded(ids)));
    let rows = query.all(connection).await?;
    Ok(rows.into_iter().filter_map(known).collect())
}

/// As [`find`], in the transaction that has locked its delivery, as it is since.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: IncidentId,
) -> Result<Option<Incident>, Error> {
    let query = Entity::find_by_id((store_id.0, id.0));
    rows::first(transaction, query.lock_exclusive()).await
}

/// The open incident of a task in which a client has reported the same.
pub async fn find_repeated(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    task_id: TaskId,
    by: ApiClientId,
    content: &IncidentContent,
) -> Result<Option<Incident>, Error> {
    let query = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.eq(task_id.0))
        .filter(Column::ClosedAt.is_null())
        .filter(Column::ApiClientId.eq(by.0))
        .filter(Column::Description.eq(content.description.clone()))
        .filter(Column::FailureReason.eq(reason(content)));
    let mut open = query.all(transaction).await?.into_iter().filter_map(known);
    Ok(open.find(|incident| incident.content == *content))
}

fn reason(content: &IncidentContent) -> Option<String> {
    Some(content.reason.as_ref()?.as_str().to_owned())
}

/// Inserts an incident, which has changed its task, with the event in the task's history.
pub async fn insert(
    transaction: &impl ConnectionTrait,
    delivery: &Delivery,
    incident: &Incident,
    event: &TaskEvent,
) -> Result<(), Error> {
    let content = &incident.content;
    let row = ActiveModel {
        store_id: Set(incident.store_id.0),
        id: Set(incident.id.0),
        delivery_id: Set(incident.delivery_id.0),
        task_id: Set(incident.task_id.0),
        description: Set(content.description.clone()),
        failure_reason: Set(reason(content)),
        metadata: Set(MetadataJson(content.metadata.clone())),
        actor: Set(incident.by.as_str().to_owned()),
        api_client_id: Set(incident.api_client_id.map_or(ERASED_CLIENT, |id| id.0)),
        created_at: Set(incident.created_at.into()),
        occurred_at: Set(incident.occurrence.at.into()),
        is_clamped: Set(incident.occurrence.is_clamped),
        closed_at: Set(None),
        closed_with: Set(None),
    };
    rows::insert(transaction, row).await?;
    change_task(transaction, delivery, incident, event).await
}

/// Stores how an incident was closed, which has changed its task, with the event in the task's history.
pub async fn close(
    transaction: &impl ConnectionTrait,
    delivery: &Delivery,
    incident: &Incident,
    event: &TaskEvent,
) -> Result<(), Error> {
    let closing = incident.closing.as_ref();
    let row = ActiveModel {
        store_id: Set(incident.store_id.0),
        id: Set(incident.id.0),
        closed_at: Set(closing.map(|closing| closing.at.into())),
        closed_with: Set(closing.and_then(|closing| closing.with.clone())),
        ..Default::default()
    };
    rows::update(transaction, row).await?;
    change_task(transaction, delivery, incident, event).await
}

/// Changes the task of an incident, and queues both for watchers.
async fn change_task(
    transaction: &impl ConnectionTrait,
    delivery: &Delivery,
    incident: &Incident,
    event: &TaskEvent,
) -> Result<(), Error> {
    let task = delivery.task(delivery.kind_of(event.task_id));
    rows::update(transaction, changed_columns(delivery.store_id, task)).await?;
    let history = task_events::insertion(delivery.store_id, std::slice::from_ref(event));
    history.exec_without_returning(transaction).await?;
    rows::insert(transaction, task_changes::of_incident(incident)).await
}

/// The statement that closes the open incidents of a task that was rescheduled, at its last change.
pub(super) fn closing(store_id: StoreId, task: &Task) -> UpdateStatement {
    Entity::update_many()
        .col_expr(
            Column::ClosedAt,
            Expr::value(Instant::from(task.updated_at)),
        )
        .col_expr(Column::ClosedWith, Expr::value(Closing::RESCHEDULED))
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.eq(task.id.0))
        .filter(Column::ClosedAt.is_null())
        .into_query()
}

/// Removes personal data from the incidents of tasks. The client is such data, as in the history.
pub(super) async fn erase(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    tasks: impl IntoIterator<Item = Uuid>,
) -> Result<(), Error> {
    let is_unknown = Column::FailureReason.is_not_in(FailureReason::KNOWN);
    let reason =
        Expr::case(is_unknown, FailureReason::OTHER).finally(Column::FailureReason.into_expr());
    let update = Entity::update_many()
        .col_expr(Column::Description, Expr::value(None::<String>))
        .col_expr(Column::FailureReason, reason.into())
        .col_expr(Column::Metadata, Expr::value(MetadataJson(BTreeMap::new())))
        .col_expr(Column::ApiClientId, Expr::value(ERASED_CLIENT))
        .col_expr(Column::ClosedWith, Expr::value(None::<String>))
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TaskId.is_in(tasks));
    update.exec(transaction).await?;
    Ok(())
}

impl TryFrom<Model> for Incident {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        let inconsistent = |what: String| Error::inconsistent("incidents", what);
        let reason = row.failure_reason.as_deref().map(str::parse);
        let api_client_id = Some(row.api_client_id).filter(|id| *id != ERASED_CLIENT);
        let closed_at = Instant::optional(row.closed_at)?;
        Ok(Self {
            id: IncidentId(row.id),
            store_id: StoreId(row.store_id),
            delivery_id: DeliveryId(row.delivery_id),
            task_id: TaskId(row.task_id),
            content: IncidentContent {
                description: row.description,
                reason: reason.transpose().map_err(inconsistent)?,
                metadata: row.metadata.0,
            },
            by: row.actor.parse().map_err(inconsistent)?,
            api_client_id: api_client_id.map(ApiClientId),
            created_at: row.created_at.try_into()?,
            occurrence: Occurrence {
                at: row.occurred_at.try_into()?,
                is_clamped: row.is_clamped,
            },
            closing: closed_at.map(|at| Closing {
                at,
                with: row.closed_with,
            }),
        })
    }
}
