//! Reports of tasks that their couriers do not have any more, or whose state refuses them. All of it happens in the
//! transaction of the report, after the delivery is locked: nothing is decided by a history that another call changes.

use domain::{
    delivery::Delivery,
    id::{DeliveryId, StoreId, TaskId},
    incident::IncidentContent,
    late_report::Lateness,
    lifecycle::Command,
    store::Store,
    task::{Task, TaskKind},
    task_event::TaskReport,
    worker::{Worker, late_since},
};
use jiff::{Timestamp, tz::TimeZone};
use storage::{ConnectionTrait, Session, late_reports};

use crate::{
    error::Error,
    services::{
        Services,
        delivery_changes::{Changed, DeliveryWriter, NOT_ASSIGNED, refused, time_of_change},
    },
};

/// A task, and for whom something is reported of it.
#[derive(Clone, Debug)]
pub(in crate::services) struct ReportedTask {
    pub(in crate::services) worker: Worker,
    now: Timestamp,
    /// The platform's, in which lists have their days.
    zone: TimeZone,
    store_id: StoreId,
    delivery_id: DeliveryId,
    id: TaskId,
    kind: TaskKind,
}

impl Services {
    pub(in crate::services) fn reported_task(
        &self,
        worker: Worker,
        store: &Store,
        task: &Task,
    ) -> ReportedTask {
        ReportedTask {
            worker,
            now: self.clock.now(),
            zone: self.config.platform.timezone.clone(),
            store_id: store.id,
            delivery_id: task.delivery_id,
            id: task.id,
            kind: task.kind,
        }
    }
}

impl ReportedTask {
    /// Whether it was the courier's own within the last 24 hours.
    pub(in crate::services) async fn was_own(
        &self,
        connection: &impl ConnectionTrait,
    ) -> Result<bool, Error> {
        let since = late_since(self.now);
        let placements = late_reports::placements(connection, self.store_id, self.id, since);
        Ok(self.worker.had(&placements.await?, self.now, &self.zone))
    }

    /// The change that a command has made, or makes as a late report if the task has left the courier's list.
    pub(super) async fn or_late(
        &self,
        transaction: &Session,
        writer: &DeliveryWriter,
        command: &Command,
        changed: Result<Option<Changed>, Error>,
    ) -> Result<Option<Changed>, Error> {
        let has_left = matches!(changed, Err(Error::Conflict(NOT_ASSIGNED, _)));
        if !has_left || !command.is_end() || !self.was_own(transaction).await? {
            return changed;
        }
        let Some(before) = self.find(transaction).await? else {
            return Ok(None);
        };
        let (store_id, kind) = (self.store_id, self.kind);
        let before = before.task(kind);
        let set_by = late_reports::courier_at(transaction, store_id, self.id, before.state_since);
        let set_by = set_by.await?;
        let has_set_state = set_by.is_some() && set_by == self.worker.courier_id();
        let apply =
            |delivery: &mut Delivery, now| delivery.apply_late(kind, command, has_set_state, now);
        let changed = writer.change(transaction, store_id, self.delivery_id, apply);
        let Some(mut changed) = changed.await? else {
            return Ok(None);
        };
        if changed.events.is_some() {
            let content = Lateness::Applied.incident(command, before.state.name());
            let delivery = &mut changed.delivery;
            self.open_incident(transaction, delivery, content, &writer.report)
                .await?;
        }
        Ok(Some(changed))
    }

    /// Keeps what a courier reports with a command that the state of the task refuses; without a key, once for each
    /// state.
    pub(super) async fn record_conflict(
        &self,
        transaction: &Session,
        writer: &DeliveryWriter,
        command: &Command,
        is_keyed: bool,
    ) -> Result<(), Error> {
        let Some(mut delivery) = self.find(transaction).await? else {
            return Ok(());
        };
        let (store_id, report) = (self.store_id, &writer.report);
        let task = delivery.task(self.kind);
        let (state, since) = (task.state.name(), task.state_since);
        let now = time_of_change(&delivery, self.now);
        let Some(event) = delivery.conflict(self.kind, command, report, now) else {
            return Ok(());
        };
        let is_failure = command.reason().is_some();
        let repeated = late_reports::has_conflict(transaction, store_id, &event, is_failure, since);
        if !is_keyed && repeated.await? {
            return Ok(());
        }
        late_reports::insert(transaction, store_id, &event).await?;
        let content = Lateness::Refused.incident(command, state);
        self.open_incident(transaction, &mut delivery, content, report)
            .await
    }

    async fn open_incident(
        &self,
        transaction: &Session,
        delivery: &mut Delivery,
        content: IncidentContent,
        report: &TaskReport,
    ) -> Result<(), Error> {
        let now = time_of_change(delivery, self.now);
        let opened = delivery.report_incident(self.kind, content, report, now);
        let (incident, event) = opened.map_err(|why| refused(why, delivery, &self.zone))?;
        storage::incidents::insert(transaction, delivery, &incident, &event).await?;
        Ok(())
    }

    /// Its delivery, which is locked.
    async fn find(&self, transaction: &Session) -> Result<Option<Delivery>, Error> {
        let found =
            storage::deliveries::find_and_lock(transaction, self.store_id, self.delivery_id);
        Ok(found.await?)
    }
}
