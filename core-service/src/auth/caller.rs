//! The caller of a request: an API client, its scopes and its store.

use std::sync::Arc;

use domain::{
    address::Address,
    api_client::{Scope, Scopes},
    id::ApiClientId,
    store::Store,
};

use proto::iri::Collection;
use tonic::Request;

use crate::error::{Error, Unauthenticated};

/// The target of the audit log.
pub(crate) const AUDIT: &str = "audit";

/// An API client with a valid token.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) id: ApiClientId,
    pub(crate) scopes: Scopes,
    pub(crate) store: Option<Store>,
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
            default_address: None,
        }
    }

    /// Fails unless the token has a scope.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), Error> {
        if self.has(scope) {
            Ok(())
        } else {
            Err(Error::Forbidden { scope })
        }
    }

    pub(crate) fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// Logs what an operator has done: the rpc and the resource it changed. Nothing for a shop's
    /// own changes.
    pub(crate) fn audit(&self, rpc: &'static str, resource: &str) {
        if self.has(Scope::Admin) {
            let client = Collection::ApiClients.name(self.id);
            tracing::info!(target: AUDIT, client, rpc, resource);
        }
    }

    /// The store the client belongs to.
    pub(crate) fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().ok_or(Error::NoStore)
    }
}
