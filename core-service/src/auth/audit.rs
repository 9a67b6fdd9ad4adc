//! Whose call it is and from where, for the rows of what it changes and reads.

use std::{net::IpAddr, sync::Arc};

use admission::Peer;
use domain::id::{ApiClientId, StoreId};
use jiff::Timestamp;
use proto::iri::Collection;
use storage::{
    Session,
    audit_events::{self, AuditEvent},
};
use uuid::Uuid;

use crate::error::Error;

/// Records what a call of an operator or of dispatch does. Of any other call, it records nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit(Option<Arc<AuditedCall>>);

#[derive(Debug)]
struct AuditedCall {
    api_client_id: ApiClientId,
    address: Option<IpAddr>,
    rpc: String,
    arrived_at: Timestamp,
}

impl Audit {
    pub(super) fn of_call<B>(
        api_client_id: ApiClientId,
        call: &http::Request<B>,
        arrived_at: Timestamp,
    ) -> Self {
        let rpc = call.uri().path().rsplit('/').next();
        let peer = call.extensions().get();
        Self(Some(Arc::new(AuditedCall {
            api_client_id,
            address: peer.map(|Peer(address)| address.to_canonical()),
            rpc: rpc.unwrap_or_default().to_owned(),
            arrived_at,
        })))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What is recorded of a resource, which may be a collection; `None` if the call is not audited.
    pub(crate) fn event(
        &self,
        store_id: Option<StoreId>,
        resource: impl Into<String>,
    ) -> Option<AuditEvent> {
        let call = self.0.as_ref()?;
        Some(AuditEvent {
            id: Uuid::now_v7(),
            created_at: call.arrived_at,
            api_client_id: call.api_client_id,
            address: call.address.map(|address| address.to_string()),
            rpc: call.rpc.clone(),
            resource: resource.into(),
            store_id,
        })
    }

    /// Records, in the transaction of a change, the resource that it changes.
    pub(crate) async fn record(
        &self,
        transaction: &Session,
        store_id: Option<StoreId>,
        resource: impl Into<String>,
    ) -> Result<(), Error> {
        let event = self.event(store_id, resource);
        Ok(audit_events::insert(transaction, event).await?)
    }

    /// Like [`Self::record`], of a change of a store itself.
    pub(crate) async fn record_store(
        &self,
        transaction: &Session,
        id: StoreId,
    ) -> Result<(), Error> {
        let name = Collection::Stores.name(id);
        self.record(transaction, Some(id), name).await
    }

    /// Like [`Self::record`], of a change of several resources, each with its store.
    pub(crate) async fn record_all(
        &self,
        transaction: &Session,
        resources: impl IntoIterator<Item = (Option<StoreId>, String)>,
    ) -> Result<(), Error> {
        let event = |(store_id, resource)| self.event(store_id, resource);
        let events: Vec<_> = resources.into_iter().filter_map(event).collect();
        Ok(audit_events::insert(transaction, events).await?)
    }
}
