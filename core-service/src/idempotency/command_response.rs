//! The stored response to a command on a task.

use tonic::Response;

use crate::error::Error;

/// The task, or why its state does not permit the command: a repetition gets its first response, although
/// the state may have changed since.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CommandResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) task: Option<proto::Task>,
    /// The message of the refusal; empty with a task.
    #[prost(string, tag = "2")]
    refusal: String,
}

impl CommandResponse {
    pub(crate) fn of_task(task: proto::Task) -> Self {
        Self {
            task: Some(task),
            refusal: String::new(),
        }
    }

    pub(crate) fn refused(refusal: String) -> Self {
        Self {
            task: None,
            refusal,
        }
    }

    /// The response with the same metadata, or the refusal with a reason.
    pub(crate) fn into_reply(
        response: Response<Self>,
        reason: &'static str,
    ) -> Result<Response<proto::Task>, Error> {
        let (metadata, message, extensions) = response.into_parts();
        let task = message
            .task
            .ok_or(Error::Conflict(reason, message.refusal))?;
        Ok(Response::from_parts(metadata, task, extensions))
    }
}
