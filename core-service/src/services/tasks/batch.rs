//! Several tasks completed with one request, each by itself.

use std::collections::{BTreeSet, HashMap};

use domain::{lifecycle::Command, worker::Worker};
use proto::limits::{MAX_BATCH, MAX_NAME, MAX_NOTES};

use super::commands::{CommandRequest, ON_BEHALF_OF};
use crate::{
    auth::caller::Caller, error::Error, messages, planning::validation::checked_text,
    services::Services,
};

impl Services {
    /// Completes tasks in order, each in a transaction of its own and under an idempotency key of its own: a repetition
    /// continues where an interrupted request stopped. An error that is not about one task ends the request.
    pub(super) async fn complete_each(
        &self,
        caller: &Caller,
        worker: Worker,
        request: proto::CompleteTasksRequest,
    ) -> Result<proto::CompleteTasksResponse, Error> {
        const RPC: &str = "CompleteTasks";
        // Fails for an invalid key, before any task is completed.
        self.idempotency
            .read_key(caller, RPC, "", request.idempotency.clone())?;
        let mut violations = messages::read_violations(request.violations);
        match request.tasks.len() {
            0 => violations.add("tasks", "REQUIRED", "is required"),
            1..=MAX_BATCH => {}
            count => {
                let description = format!("must be at most {MAX_BATCH} tasks, not {count}");
                violations.add("tasks", "TOO_MANY", description);
            }
        }
        checked_text("notes", &request.notes, MAX_NOTES, &mut violations);
        let contact_name = &request.contact_name;
        checked_text("contact_name", contact_name, MAX_NAME, &mut violations);
        Error::check(violations)?;

        let (mut named, mut tasks, mut failed) = (BTreeSet::new(), Vec::new(), HashMap::new());
        for name in request.tasks {
            if !named.insert(name.clone()) {
                continue;
            }
            let idempotency = request.idempotency.clone();
            let call = CommandRequest {
                notes: request.notes.clone(),
                contact_name: contact_name.clone(),
                ..CommandRequest::new(RPC, name.clone(), idempotency, request.report.clone())
            };
            let completed = self.change_task(caller, worker, call, |_, _| Some(Command::Complete));
            match completed.await {
                Ok(task) => tasks.push(task.into_inner()),
                Err(Error::Invalid(violations))
                    if violations
                        .iter()
                        .all(|violation| violation.field == ON_BEHALF_OF) =>
                {
                    let reasons = violations.iter().map(|violation| &*violation.description);
                    failed.insert(name, reasons.collect::<Vec<_>>().join("; "));
                }
                Err(
                    error @ (Error::NotFound(_)
                    | Error::InvalidName(..)
                    | Error::Conflict(..)
                    | Error::IdempotencyKeyReused),
                ) => {
                    failed.insert(name, error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(proto::CompleteTasksResponse { tasks, failed })
    }
}
