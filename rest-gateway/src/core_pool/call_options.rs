//! Options of a call to core: metadata, deadline, and whether it may be retried.

use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};

/// The metadata and the deadline of a call.
#[derive(Clone)]
pub(crate) struct CallOptions {
    pub(crate) authorization: Option<MetadataValue<Ascii>>,
    pub(crate) request_id: Option<MetadataValue<Ascii>>,
    pub(crate) deadline: Instant,
    /// Whether two executions have the same effect as one: the call may be retried on another core
    /// after its response was lost. Others are retried only if core certainly did not process them.
    pub(crate) is_idempotent: bool,
}

impl CallOptions {
    /// A request with these options. Core gets the remaining time as its timeout,
    /// unless it is called within this process.
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
