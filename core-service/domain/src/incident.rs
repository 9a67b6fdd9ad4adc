//! Incidents: what went wrong with a task, open until dispatch closes them or reschedules the task.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    delivery::Delivery,
    device_clock::Occurrence,
    id::{ApiClientId, DeliveryId, IncidentId, StoreId, TaskId},
    lifecycle::Refusal,
    task::{Actor, FailureReason, TaskKind},
    task_event::{TaskEvent, TaskReport, Transition},
};

/// What a courier or dispatch reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncidentContent {
    pub description: Option<String>,
    pub reason: Option<FailureReason>,
    pub metadata: BTreeMap<String, String>,
}

impl IncidentContent {
    /// The length of its texts in bytes.
    pub fn text_bytes(&self) -> usize {
        let metadata = self.metadata.iter();
        let metadata = metadata.map(|(key, value)| key.len() + value.len());
        self.description.as_ref().map_or(0, String::len) + metadata.sum::<usize>()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub id: IncidentId,
    pub store_id: StoreId,
    pub delivery_id: DeliveryId,
    pub task_id: TaskId,
    pub content: IncidentContent,
    /// Who reported it.
    pub by: Actor,
    /// None once it is erased.
    pub api_client_id: Option<ApiClientId>,
    /// When its report arrived; later than the changes of the delivery before.
    pub created_at: Timestamp,
    pub occurrence: Occurrence,
    pub closing: Option<Closing>,
}

/// How an incident was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    pub at: Timestamp,
    /// What was done.
    pub with: Option<String>,
}

impl Incident {
    /// The length of its texts in bytes.
    pub fn text_bytes(&self) -> usize {
        let closing = self.closing.as_ref();
        let closing = closing.and_then(|closing| closing.with.as_ref());
        self.content.text_bytes() + closing.map_or(0, String::len)
    }
}

impl Closing {
    /// What was done if the task was rescheduled.
    pub const RESCHEDULED: &str = "rescheduled";
}

impl Delivery {
    /// Opens an incident of a task in any state.
    pub fn report_incident(
        &mut self,
        kind: TaskKind,
        content: IncidentContent,
        report: &TaskReport,
        now: Timestamp,
    ) -> Result<(Incident, TaskEvent), Refusal> {
        // Nothing would erase its texts any more.
        if self.is_erased {
            return Err(Refusal::Erased);
        }
        let task = self.task_mut(kind);
        task.open_incidents = task.open_incidents.saturating_add(1);
        task.updated_at = now;
        let transition = Transition::IncidentReported {
            reason: content.reason.clone(),
            notes: content.description.clone(),
        };
        let event = report.event(self, self.task(kind), transition, now);
        let incident = Incident {
            id: IncidentId::new(),
            store_id: self.store_id,
            delivery_id: self.id,
            task_id: event.task_id,
            content,
            by: event.by,
            api_client_id: event.api_client_id,
            created_at: now,
            occurrence: event.occurrence,
            closing: None,
        };
        Ok((incident, event))
    }

    /// Closes an incident of one of its tasks; `None` if it is closed. The notes of the report say what was done.
    pub fn close_incident(
        &mut self,
        incident: &mut Incident,
        report: &TaskReport,
        now: Timestamp,
    ) -> Option<TaskEvent> {
        if incident.closing.is_some() {
            return None;
        }
        let kind = self.kind_of(incident.task_id);
        let task = self.task_mut(kind);
        task.open_incidents = task.open_incidents.saturating_sub(1);
        task.updated_at = now;
        let notes = report.remarks.notes.clone();
        let notes = notes.filter(|_| !self.is_erased);
        incident.closing = Some(Closing {
            at: now,
            with: notes.clone(),
        });
        let transition = Transition::IncidentClosed { notes };
        Some(report.event(self, self.task(kind), transition, now))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::{device_clock::DeviceTimes, fixture, task_event::Remarks};

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    fn report(notes: &str) -> TaskReport {
        TaskReport {
            by: Actor::Courier,
            api_client_id: ApiClientId::new(),
            courier_id: None,
            times: DeviceTimes::default(),
            remarks: Remarks {
                notes: Some(notes.to_owned()),
                contact_name: None,
            },
        }
    }

    fn content() -> IncidentContent {
        IncidentContent {
            description: Some("The box is wet".to_owned()),
            reason: Some("DAMAGED".parse().unwrap()),
            metadata: [("shelf".to_owned(), "7".to_owned())].into(),
        }
    }

    #[test]
    fn an_incident_is_open_until_it_is_closed_once() {
        let mut delivery = fixture::delivery(1000);
        let before = delivery.clone();
        let by_courier = report("");

        let reported = delivery.report_incident(TaskKind::Dropoff, content(), &by_courier, at(100));
        let (mut incident, event) = reported.unwrap();

        assert_eq!(delivery.dropoff.open_incidents, 1);
        assert_eq!(delivery.dropoff.updated_at, at(100));
        assert_eq!(delivery.pickup, before.pickup);
        assert_eq!(incident.task_id, before.dropoff.id);
        assert_eq!(incident.content, content());
        assert_eq!(incident.closing, None);
        let transition = Transition::IncidentReported {
            reason: content().reason,
            notes: content().description,
        };
        assert_eq!(event.transition, transition);
        assert_eq!(event.api_client_id, Some(by_courier.api_client_id));

        let closed = delivery.close_incident(&mut incident, &report("dried"), at(101));

        let notes = Some("dried".to_owned());
        let transition = Transition::IncidentClosed {
            notes: notes.clone(),
        };
        assert_eq!(closed.unwrap().transition, transition);
        let closing = Closing {
            at: at(101),
            with: notes,
        };
        assert_eq!(incident.closing, Some(closing));
        assert_eq!(delivery.dropoff.open_incidents, 0);
        let (closed, after) = (incident.clone(), delivery.clone());
        assert_eq!(
            delivery.close_incident(&mut incident, &report("again"), at(102)),
            None
        );
        assert_eq!((incident, delivery), (closed, after));
    }

    #[test]
    fn an_erased_delivery_gets_no_incident_and_no_note() {
        let mut delivery = fixture::delivery(1000);
        let reported = delivery.report_incident(TaskKind::Pickup, content(), &report(""), at(100));
        let (mut incident, _) = reported.unwrap();
        delivery.is_erased = true;

        let refused = delivery.report_incident(TaskKind::Pickup, content(), &report(""), at(101));
        let closed = delivery.close_incident(&mut incident, &report("Zoé"), at(102));

        assert_eq!(refused, Err(Refusal::Erased));
        let closed = closed.unwrap();
        assert_eq!(
            closed.transition,
            Transition::IncidentClosed { notes: None }
        );
        assert_eq!(closed.api_client_id, None);
        assert_eq!(incident.closing.unwrap().with, None);
    }
}
