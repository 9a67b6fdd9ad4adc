//! The caller of a request: an API client, its scopes and its store.

use std::sync::Arc;

use domain::{
    address::Address,
    api_client::{Scope, Scopes, TaskStatus},
    id::{ApiClientId, CourierId},
    store::Store,
};

use proto::iri::Collection;
use tonic::{Request, Response};

use crate::error::{Error, Unauthenticated};

pub(crate) const AUDIT: &str = "audit";

/// What an audited call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Changed,
    /// Nothing: the resource already was as requested.
    Unchanged,
    /// Nothing: its response is that of an earlier call, which may have been cancelled before its line.
    Replayed,
}

impl Effect {
    pub(crate) fn of<M>(reply: &Response<M>) -> Self {
        if reply.metadata().contains_key(proto::IDEMPOTENT_REPLAYED) {
            Self::Replayed
        } else {
            Self::Changed
        }
    }
}

/// An API client with a valid token.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) id: ApiClientId,
    pub(crate) scopes: Scopes,
    pub(crate) store: Option<Store>,
    /// As whom it works.
    pub(crate) courier_id: Option<CourierId>,
    pub(crate) task_status: TaskStatus,
    /// The client's own default pickup address.
    pub(crate) default_address: Option<Address>,
}

impl Caller {
    /// The caller of a request, whom [`Authentication`](super::authentication::Authentication)
    /// has identified, and the message.
    pub(crate) fn of<T>(request: Request<T>) -> Result<(Arc<Self>, T), Error> {
        let (_, mut extensions, message) = request.into_parts();
        let caller = extensions
            .remove()
            .ok_or(Error::Unauthenticated(Unauthenticated::NoToken))?;
        Ok((caller, message))
    }

    /// The caller of a request, whose token must have a scope, and the message.
    pub(crate) fn with_scope<T>(
        request: Request<T>,
        scope: Scope,
    ) -> Result<(Arc<Self>, T), Error> {
        let (caller, message) = Self::of(request)?;
        caller.require(scope)?;
        Ok((caller, message))
    }

    /// A caller without scopes, for an operator's request on behalf of a store.
    pub(crate) fn of_store(id: ApiClientId, store: Store) -> Self {
        Self {
            id,
            scopes: Scopes::new([]),
            store: Some(store),
            courier_id: None,
            task_status: TaskStatus::Specified,
            default_address: None,
        }
    }

    /// The same client on behalf of a store, which is not its own.
    pub(crate) fn for_store(&self, store: Store) -> Self {
        Self {
            scopes: self.scopes.clone(),
            ..Self::of_store(self.id, store)
        }
    }

    pub(crate) fn require(&self, scope: Scope) -> Result<(), Error> {
        if self.has(scope) {
            Ok(())
        } else {
            Err(Error::Forbidden { scope })
        }
    }

    pub(crate) fn has(&self, scope: Scope) -> bool {
        self.scopes.permits(scope)
    }

    /// Logs what an operator or dispatch has done: the rpc and the resource it changed. Nothing for a shop's
    /// own changes.
    pub(crate) fn audit<M>(&self, rpc: &'static str, resource: &str, reply: &Response<M>) {
        self.audit_effect(rpc, resource, Effect::of(reply));
    }

    pub(crate) fn audit_effect(&self, rpc: &'static str, resource: &str, effect: Effect) {
        if self.has(Scope::Dispatch) {
            let client = Collection::ApiClients.name(self.id);
            let unchanged = (effect == Effect::Unchanged).then_some(true);
            let replayed = (effect == Effect::Replayed).then_some(true);
            tracing::info!(target: AUDIT, client, rpc, resource, unchanged, replayed);
        }
    }

    /// The courier as whom it works, if it has the scope.
    pub(crate) fn courier(&self) -> Option<CourierId> {
        self.courier_id.filter(|_| self.has(Scope::Courier))
    }

    pub(crate) fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().ok_or(Error::NoStore)
    }
}
