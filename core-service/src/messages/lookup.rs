//! Looks up resources by the names and references that clients give.

use domain::{id::StoreId, store::Store};
use proto::iri::Collection;
use uuid::Uuid;

use storage::Storage;

use crate::error::Error;

/// Finds what a name refers to. Fails if it does not exist.
pub(crate) async fn resource<T, F>(
    (collection, name): (Collection, &str),
    find: impl FnOnce(Uuid) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<Option<T>, storage::Error>>,
{
    let found = match collection.id(name) {
        Some(id) => find(id).await?,
        None => None,
    };
    found.ok_or_else(|| Error::NotFound(name.to_owned()))
}

/// Finds a store. Fails if it does not exist.
pub(crate) async fn store(storage: &Storage, name: &str) -> Result<Store, Error> {
    let find = |id| storage::stores::find(storage.reader(), StoreId(id));
    resource((Collection::Stores, name), find).await
}

/// Fails if a delivery of the store has the external reference.
pub(crate) async fn check_external_reference(
    storage: &Storage,
    store_id: StoreId,
    reference: Option<String>,
) -> Result<(), Error> {
    let Some(reference) = reference else {
        return Ok(());
    };
    let reader = storage.reader();
    let id = storage::deliveries::find_by_external_reference(reader, store_id, &reference);
    match id.await? {
        Some(id) => Err(Error::ExternalReferenceTaken {
            reference,
            existing: Collection::Deliveries.name(id),
        }),
        None => Ok(()),
    }
}
