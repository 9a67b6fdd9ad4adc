//! What dispatch corrects in a task, in any state: texts for its courier.

use jiff::Timestamp;

use crate::{
    delivery::Delivery,
    event::EventName,
    id::AddressId,
    lifecycle::Refusal,
    task::{Task, TaskKind},
};

/// A new text of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Correction {
    Comments(String),
    /// E.164; none removes it, as of the description.
    Telephone(Option<String>),
    Description(Option<String>),
}

impl Delivery {
    /// Corrects a task; no event is sent. `None` if its texts already are the new ones.
    pub fn correct(
        &mut self,
        kind: TaskKind,
        corrections: &[Correction],
        now: Timestamp,
    ) -> Result<Option<Vec<EventName>>, Refusal> {
        // Nothing would erase the texts any more.
        if self.is_erased {
            return Err(Refusal::Erased);
        }
        let task = self.task_mut(kind);
        let before = task.clone();
        for correction in corrections {
            match correction.clone() {
                Correction::Comments(text) => task.details.comments = text,
                Correction::Telephone(number) => task.address.telephone = number,
                Correction::Description(text) => task.address.description = text,
            }
        }
        if !task.is_corrected(&before) {
            return Ok(None);
        }
        if task.address != before.address {
            // Not the same resource: its fields differ.
            task.address.id = AddressId::new();
        }
        task.updated_at = now;
        Ok(Some(Vec::new()))
    }
}

impl Task {
    /// Whether a correction has changed it since.
    pub fn is_corrected(&self, before: &Self) -> bool {
        self.address != before.address || self.details.comments != before.details.comments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device_clock::DeviceTimes,
        fixture,
        id::ApiClientId,
        task::{Actor, TaskState},
        task_event::{Remarks, TaskReport, Transition},
    };

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn every_correction() -> [Correction; 3] {
        [
            Correction::Comments("Ring twice".to_owned()),
            Correction::Telephone(Some("+33612345678".to_owned())),
            Correction::Description(Some("Second floor".to_owned())),
        ]
    }

    #[test]
    fn a_task_of_any_state_is_corrected_and_its_history_says_that_it_was() {
        let report = TaskReport {
            by: Actor::Dispatch,
            api_client_id: ApiClientId::new(),
            courier_id: None,
            times: DeviceTimes::default(),
            remarks: Remarks::default(),
        };
        for state in [
            TaskState::Todo,
            TaskState::Doing,
            TaskState::Done,
            TaskState::Failed("OTHER".parse().unwrap()),
            TaskState::Cancelled,
        ] {
            for kind in TaskKind::ALL {
                let mut delivery = fixture::delivery(1000);
                delivery.task_mut(kind).state = state.clone();
                let before = delivery.clone();

                let events = delivery.correct(kind, &every_correction(), NOW);

                assert_eq!(events, Ok(Some(Vec::new())));
                let task = delivery.task(kind);
                assert_eq!(task.details.comments, "Ring twice");
                assert_eq!(task.address.telephone.as_deref(), Some("+33612345678"));
                assert_eq!(task.address.description.as_deref(), Some("Second floor"));
                assert_ne!(task.address.id, before.task(kind).address.id);
                assert_eq!((&task.state, task.updated_at), (&state, NOW));
                let history = report.events(&before, &delivery, NOW);
                let transitions = history
                    .iter()
                    .map(|event| (event.task_id, &event.transition));
                let expected = [(task.id, &Transition::Updated)];
                assert_eq!(transitions.collect::<Vec<_>>(), expected);
                let corrected = delivery.clone();
                let again = delivery.correct(kind, &every_correction(), NOW);
                assert_eq!((again, delivery), (Ok(None), corrected));
            }
        }
    }

    #[test]
    fn a_text_that_is_removed_is_a_correction_and_comments_change_no_address() {
        let mut delivery = fixture::delivery(1000);
        let kind = TaskKind::Dropoff;
        delivery.correct(kind, &every_correction(), NOW).unwrap();
        let id = delivery.dropoff.address.id;

        let comments = [Correction::Comments(String::new())];
        assert!(delivery.correct(kind, &comments, NOW).unwrap().is_some());
        assert_eq!(delivery.dropoff.details.comments, "");
        assert_eq!(delivery.dropoff.address.id, id);

        let removed = [Correction::Telephone(None), Correction::Description(None)];
        assert!(delivery.correct(kind, &removed, NOW).unwrap().is_some());
        let address = &delivery.dropoff.address;
        assert_eq!((&address.telephone, &address.description), (&None, &None));
    }

    #[test]
    fn an_erased_task_is_not_corrected() {
        let mut delivery = fixture::delivery(1000);
        delivery.is_erased = true;

        let refused = delivery.correct(TaskKind::Pickup, &every_correction(), NOW);

        assert_eq!(refused, Err(Refusal::Erased));
    }
}
