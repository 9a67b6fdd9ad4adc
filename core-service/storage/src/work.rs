//! What runs in a transaction.

use super::session::Session;

/// The work of a transaction ([`Storage::write`]), over values that each run gets a clone of. It gets
/// a clone of the session, which must not outlive it: otherwise the write fails.
///
/// [`Storage::write`]: super::Storage::write
pub trait Work<T>:
    FnOnce(Session) -> <Self as Work<T>>::Future + Clone + Send + Sync + 'static
{
    type Future: Future<Output = T> + Send;
}

impl<T, W, F> Work<T> for W
where
    W: FnOnce(Session) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = T> + Send,
{
    type Future = F;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crate::{Error, fixture, stores};

    #[tokio::test]
    async fn a_write_fails_and_is_rolled_back_if_its_work_keeps_the_session() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let kept = Arc::new(Mutex::new(None));
            for keeps in [true, false] {
                let (to_keep, store) = (Arc::clone(&kept), fixture::store("A"));
                let write = storage.write(move |transaction| async move {
                    stores::insert(&transaction, &store).await?;
                    *to_keep.lock().unwrap() = keeps.then_some(transaction);
                    Ok::<_, Error>(())
                });
                let written = write.await;
                kept.lock().unwrap().take();

                assert_eq!(written.is_err(), keeps);
                let stores = stores::list(storage.reader()).await.unwrap();
                assert_eq!(stores.is_empty(), keeps);
            }
        }
    }
}
