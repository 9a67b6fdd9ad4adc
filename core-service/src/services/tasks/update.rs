//! What dispatch corrects in tasks.

use domain::{
    delivery::Delivery,
    task::Actor,
    task_correction::Correction,
    task_event::{Remarks, TaskReport},
    telephone,
    violation::Violations,
};
use proto::{iri::Collection, limits::MAX_LONG_TEXT};
use tonic::Response;

use crate::{
    auth::caller::{Caller, Effect},
    error::Error,
    idempotency::CommandResponse,
    messages,
    planning::validation::{self, checked_text},
    services::{
        Services,
        delivery_changes::{DeliveryWriter, TASK_STATE},
    },
};

impl Services {
    pub(super) async fn correct_task(
        &self,
        caller: &Caller,
        request: proto::UpdateTaskRequest,
    ) -> Result<Response<proto::Task>, Error> {
        let (rpc, requested) = ("UpdateTask", request.task.unwrap_or_default());
        let name = requested.name.clone();
        let (store, task) = self.find_any_task(&name).await?;
        let key = self
            .idempotency
            .read_key(caller, rpc, &name, request.idempotency)?
            .map(|key| key.of_delivery(store.id, task.delivery_id));
        if let Some(replayed) = self.idempotency.replay(key).await? {
            caller.audit_effect(rpc, &name, Effect::Replayed);
            return CommandResponse::into_task(replayed, TASK_STATE);
        }
        let mut violations = messages::read_violations(request.violations);
        let paths = request.update_mask.unwrap_or_default().paths;
        let country = store.country.as_str();
        let corrections = read_corrections(&requested, &paths, country, &mut violations);
        Error::check(violations)?;
        let report = TaskReport {
            by: Actor::Dispatch,
            api_client_id: caller.id,
            courier_id: None,
            times: messages::device_times(request.report),
            remarks: Remarks::default(),
        };

        let writer = DeliveryWriter::new(self, store.time_zone.clone(), report);
        let audit = caller.audit.clone();
        let write = self
            .idempotency
            .write_with(key, move |transaction| async move {
                let correct =
                    |delivery: &mut Delivery, now| delivery.correct(task.kind, &corrections, now);
                let changed = writer.change(&transaction, store.id, task.delivery_id, correct);
                let missing = || Error::NotFound(Collection::Tasks.name(task.id));
                let changed = changed.await?.ok_or_else(missing)?;
                if changed.events.is_some() {
                    let name = Collection::Tasks.name(task.id);
                    audit.record(&transaction, Some(store.id), name).await?;
                }
                let corrected = changed.delivery.into_task(task.kind);
                // With the texts that another call may just have corrected.
                let mut violations = Violations::new();
                let bytes = validation::text_bytes(&corrected.details);
                let bytes = bytes + corrected.address.text_bytes();
                validation::check_total("task", bytes, &mut violations);
                Error::check(violations)?;
                let message = messages::task_with_place(corrected, &store);
                Ok((CommandResponse::of_task(message), changed.events))
            });
        let (response, events) = write.await?;
        let effect = self.finish(&response, events.flatten());
        caller.audit_effect(rpc, &name, effect);
        CommandResponse::into_task(response, TASK_STATE)
    }
}

/// The fields of a mask, as they are checked at creation.
fn read_corrections(
    task: &proto::Task,
    paths: &[String],
    country: &str,
    violations: &mut Violations,
) -> Vec<Correction> {
    if paths.is_empty() {
        violations.add("update_mask", "REQUIRED", "is required");
    }
    let address = task.address.clone().unwrap_or_default();
    let given = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut corrections = Vec::new();
    for path in paths {
        let correction = match path.as_str() {
            "comments" => {
                let text = checked_text("task.comments", &task.comments, MAX_LONG_TEXT, violations);
                Correction::Comments(text.unwrap_or_default())
            }
            "address.telephone" => {
                let number = telephone::parse(&given(&address.telephone), country);
                let field = "task.address.telephone";
                let number = violations.check(field, "INVALID_TELEPHONE", number);
                Correction::Telephone(number.flatten())
            }
            "address.description" => {
                let field = "task.address.description";
                let text = given(&address.description);
                Correction::Description(checked_text(field, &text, MAX_LONG_TEXT, violations))
            }
            _ => {
                let known = "must name comments, address.telephone or address.description";
                violations.add("update_mask", "UNKNOWN_FIELD", known);
                continue;
            }
        };
        corrections.push(correction);
    }
    corrections
}
