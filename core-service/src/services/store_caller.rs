//! For which store a caller plans deliveries: its own, or the one that dispatch names.

use std::sync::Arc;

use domain::api_client::Scope;

use super::Services;
use crate::{auth::caller::Caller, error::Error, messages};

impl Services {
    /// The caller on behalf of a store: a store's client names none, and a program of the platform, which needs a
    /// scope, names one.
    pub(super) async fn caller_for_store(
        &self,
        caller: Arc<Caller>,
        store: &str,
        scope: Scope,
    ) -> Result<Arc<Caller>, Error> {
        if store.is_empty() {
            caller.require(Scope::Deliveries)?;
            caller.store()?;
            return Ok(caller);
        }
        caller.require(scope)?;
        let store = messages::find_store(&self.storage, store).await?;
        Ok(Arc::new(caller.for_store(store)))
    }
}
