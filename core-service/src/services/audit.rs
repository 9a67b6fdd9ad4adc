//! The audit: read by operators. What else is recorded than changes in the database: reads of personal data, and changes
//! outside of the database.

use domain::{
    api_client::Scope,
    id::{ApiClientId, StoreId},
    violation::Violations,
};
use jiff::{SignedDuration, Timestamp};
use proto::{iri::Collection, limits::MAX_NAME};
use storage::{
    audit_events::{self, AuditEvent, Filter},
    pages::{Cursor, Start},
};
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, pages},
    planning::validation::checked_text,
};

/// For how long further reads of the same are not recorded.
const INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// How many reads are remembered.
const MAX_READS: u64 = 10_000;

/// The reads of the last minute, and when each is recorded again.
pub(crate) struct RecordedReads(moka::sync::Cache<Read, Timestamp>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Read {
    api_client_id: ApiClientId,
    rpc: String,
    resource: String,
    store_id: Option<StoreId>,
}

impl Default for RecordedReads {
    fn default() -> Self {
        Self(moka::sync::Cache::new(MAX_READS))
    }
}

#[tonic::async_trait]
impl proto::audit_server::Audit for Services {
    async fn list_audit_events(
        &self,
        request: Request<proto::ListAuditEventsRequest>,
    ) -> Reply<proto::ListAuditEventsResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;
        Ok(Response::new(self.read_audit_events(request).await?))
    }
}

impl Services {
    async fn read_audit_events(
        &self,
        request: proto::ListAuditEventsRequest,
    ) -> Result<proto::ListAuditEventsResponse, Error> {
        let mut violations = Violations::new();
        let size = pages::read_size(request.page_size, &mut violations);
        let mut start = pages::read_token(&request.page_token, &mut violations);
        if matches!(start, Start::NewerThan(_)) {
            violations.add("page_token", "INVALID_CURSOR", pages::NOT_OF_LIST);
            start = Start::Newest;
        }
        let since = request.since.and_then(|since| {
            let since = messages::instant(&since).ok_or("is not an instant");
            violations.check("since", "OUT_OF_RANGE", since)
        });
        let mut text = |field, text: &str| checked_text(field, text, MAX_NAME, &mut violations);
        let rpc = text("rpc", &request.rpc);
        let resource = text("resource", &request.resource);
        Error::check(violations)?;
        let id = |collection, name: &str| {
            let given = Some(name).filter(|name| !name.is_empty());
            given
                .map(|name| messages::id_in(collection, name))
                .transpose()
        };
        let filter = Filter {
            api_client_id: id(Collection::ApiClients, &request.api_client)?.map(ApiClientId),
            rpc,
            resource,
            store_id: id(Collection::Stores, &request.store)?.map(StoreId),
            since,
        };

        let reader = self.storage.reader();
        let (events, has_more) = audit_events::list(reader, filter, start, size).await?;
        let clients = events.iter().map(|event| event.api_client_id);
        let clients = storage::api_clients::find_all(reader, clients).await?;
        let last = events.last().filter(|_| has_more).map(|last| Cursor {
            created_at: last.created_at,
            id: last.id,
        });
        let next_page_token = last.map(|last| pages::encode(Start::OlderThan(last)));
        let message = |event: AuditEvent| {
            let mut clients = clients.iter();
            let client = clients.find(|client| client.id == event.api_client_id);
            proto::AuditEvent {
                name: Collection::AuditEvents.name(event.id),
                create_time: Some(messages::timestamp(event.created_at)),
                api_client: Collection::ApiClients.name(event.api_client_id),
                api_client_display_name: client
                    .map(|client| client.display_name.clone())
                    .unwrap_or_default(),
                address: event.address.unwrap_or_default(),
                rpc: event.rpc,
                resource: event.resource,
                store: event
                    .store_id
                    .map(|id| Collection::Stores.name(id))
                    .unwrap_or_default(),
            }
        };
        Ok(proto::ListAuditEventsResponse {
            audit_events: events.into_iter().map(message).collect(),
            next_page_token: next_page_token.unwrap_or_default(),
        })
    }

    /// Records that an operator or dispatch reads personal data of a resource, or of a collection: once a minute.
    pub(super) fn record_read(&self, caller: &Caller, store_id: Option<StoreId>, resource: &str) {
        let Some(event) = caller.audit.event(store_id, resource) else {
            return;
        };
        let read = Read {
            api_client_id: event.api_client_id,
            rpc: event.rpc.clone(),
            resource: event.resource.clone(),
            store_id,
        };
        let now = self.clock.now();
        let recorded = &self.recorded_reads.0;
        if recorded.get(&read).is_some_and(|until| now < until) {
            return;
        }
        recorded.insert(read.clone(), now.saturating_add(INTERVAL).unwrap_or(now));
        let recorded = recorded.clone();
        // A read that could not be recorded is recorded the next time.
        self.record_apart(event, move || recorded.invalidate(&read));
    }

    /// Records a change that is not in the database.
    pub(super) fn record_change(&self, caller: &Caller, store_id: Option<StoreId>, resource: &str) {
        if let Some(event) = caller.audit.event(store_id, resource) {
            self.record_apart(event, || ());
        }
    }

    /// Adds a row in a transaction of its own, in the background: a database that does not write must not keep dispatch
    /// from reading.
    fn record_apart(&self, event: AuditEvent, on_failure: impl FnOnce() + Send + 'static) {
        let storage = self.storage.clone();
        self.task_tracker.spawn(async move {
            let row = event.clone();
            let write = storage.write(move |transaction| async move {
                audit_events::insert(&transaction, [row]).await
            });
            if let Err(error) = write.await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, ?event, "cannot record an audit event");
                on_failure();
            }
        });
    }
}
