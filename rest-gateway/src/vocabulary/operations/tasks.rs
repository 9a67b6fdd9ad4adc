//! Tasks.

use super::{Expects, Needs, On, Operation, READ, Returns};
use crate::{error_codes as codes, vocabulary::classes::deliveries::TASK};

const SUBJECT: &str = "Tasks";

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Resource(&TASK),
        path: "/api/tasks/{id}",
        id: "getTask",
        title: "Reads a task",
        about: "Its `status` becomes `DONE` once it is completed. Who polls sends the last `ETag` \
                as `If-None-Match`, or better registers a webhook.",
        subject: SUBJECT,
        needs: Needs::Scope("tasks"),
        returns: Returns::Resource(&TASK),
        ..READ
    },
    Operation {
        on: On::Path(&TASK),
        method: "PUT",
        path: "/api/tasks/{id}/done",
        id: "completeTask",
        title: "Completes a task",
        about: "For the platform's own programs. Completing it again changes nothing.",
        subject: SUBJECT,
        needs: Needs::Scope("tasks:all"),
        expects: Expects::Empty,
        returns: Returns::Resource(&TASK),
        refusals: &[&codes::DELIVERY_CANCELLED],
        ..READ
    },
];
