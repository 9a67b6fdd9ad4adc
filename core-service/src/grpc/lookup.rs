//! Looks up resources by the names and references that clients give.

use domain::{id::StoreId, store::Store};
use proto::iri::Collection;

use storage::Storage;

use crate::error::Error;

/// Finds a store. Fails if it does not exist.
pub(super) async fn store(storage: &Storage, name: &str) -> Result<Store, Error> {
    let not_found = || Error::NotFound(name.to_owned());
    let id = Collection::Stores.id(name).ok_or_else(not_found)?;
    storage::stores::find(storage.reader(), StoreId(id))
        .await?
        .ok_or_else(not_found)
}

/// Fails if a delivery of the store has the external reference.
pub(super) async fn check_external_reference(
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
