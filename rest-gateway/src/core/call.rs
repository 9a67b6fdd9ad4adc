//! What a call carries, and whether it may be repeated.

use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};

use crate::rate_limits::Token;

/// What a call carries beside its message.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) authorization: Option<MetadataValue<Ascii>>,
    pub(crate) request_id: Option<MetadataValue<Ascii>>,
    pub(crate) deadline: Instant,
    /// The same authorization, to note whose it is once core has accepted it.
    pub(crate) token: Option<Token>,
}

/// Whether doing a call twice is the same as doing it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It may be repeated even when it is unknown whether it was done.
    Harmless,
    /// It is tried elsewhere only if it was certainly never sent.
    Harmful,
}

impl Repeat {
    /// Of a call that creates something: core does it once for each key.
    pub(crate) fn with(idempotency: Option<&proto::Idempotency>) -> Self {
        match idempotency {
            Some(_) => Self::Harmless,
            None => Self::Harmful,
        }
    }
}

impl Call {
    /// The message with all that, and the time that is left, which core heeds too.
    pub(crate) fn request<M>(&self, message: M) -> tonic::Request<M> {
        let mut request = tonic::Request::new(message);
        request.set_timeout(self.deadline.saturating_duration_since(Instant::now()));
        let metadata = request.metadata_mut();
        if let Some(authorization) = &self.authorization {
            let mut authorization = authorization.clone();
            authorization.set_sensitive(true);
            metadata.insert("authorization", authorization);
        }
        if let Some(request_id) = &self.request_id {
            metadata.insert("x-request-id", request_id.clone());
        }
        request
    }
}
