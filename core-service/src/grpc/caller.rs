//! The caller of a request: an API client, its scopes and its store.

use domain::{
    address::Address,
    api_client::{Scope, Scopes},
    id::ApiClientId,
    store::Store,
};

use crate::error::Error;

/// An API client with a valid token.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) id: ApiClientId,
    pub(super) scopes: Scopes,
    pub(super) store: Option<Store>,
    /// The client's own default pickup address.
    pub(super) default_address: Option<Address>,
}

impl Caller {
    /// A caller without scopes, for an operator's request on behalf of a store.
    pub(super) fn of_store(id: ApiClientId, store: Store) -> Self {
        Self {
            id,
            scopes: Scopes::new([]),
            store: Some(store),
            default_address: None,
        }
    }

    /// Fails unless the token has a scope.
    pub(super) fn require(&self, scope: Scope) -> Result<(), Error> {
        if self.has(scope) {
            Ok(())
        } else {
            Err(Error::Forbidden { scope })
        }
    }

    pub(super) fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// The store the client belongs to.
    pub(super) fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().ok_or(Error::NoStore)
    }
}
