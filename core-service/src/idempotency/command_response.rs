//! The stored response to a command on a task or a delivery.

use tonic::Response;

use crate::error::Error;

/// The task or the delivery, or why its state does not permit the command: a repetition gets its first response,
/// although the state may have changed since.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CommandResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) task: Option<proto::Task>,
    /// The message of the refusal; empty with a task or a delivery.
    #[prost(string, tag = "2")]
    refusal: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) delivery: Option<proto::Delivery>,
}

impl CommandResponse {
    pub(crate) fn of_task(task: proto::Task) -> Self {
        Self {
            task: Some(task),
            ..Self::default()
        }
    }

    pub(crate) fn of_delivery(delivery: proto::Delivery) -> Self {
        Self {
            delivery: Some(delivery),
            ..Self::default()
        }
    }

    pub(crate) fn refused(refusal: String) -> Self {
        Self {
            refusal,
            ..Self::default()
        }
    }

    /// The task with the metadata of the response, or the refusal with a reason.
    pub(crate) fn into_task(
        response: Response<Self>,
        reason: &'static str,
    ) -> Result<Response<proto::Task>, Error> {
        Self::into_reply(response, reason, |message| message.task.take())
    }

    /// Like [`Self::into_task`], of a command on a delivery.
    pub(crate) fn into_delivery(
        response: Response<Self>,
        reason: &'static str,
    ) -> Result<Response<proto::Delivery>, Error> {
        Self::into_reply(response, reason, |message| message.delivery.take())
    }

    fn into_reply<M>(
        response: Response<Self>,
        reason: &'static str,
        take: impl FnOnce(&mut Self) -> Option<M>,
    ) -> Result<Response<M>, Error> {
        let (metadata, mut message, extensions) = response.into_parts();
        let taken = take(&mut message);
        let taken = taken.ok_or(Error::Conflict(reason, message.refusal))?;
        Ok(Response::from_parts(metadata, taken, extensions))
    }
}
