//! What runs in a transaction.

use futures_util::{FutureExt as _, future::BoxFuture};

use super::session::Session;

/// The work of a transaction ([`Storage::write`]): an asynchronous closure over values that each run
/// gets a clone of.
///
/// [`Storage::write`]: super::Storage::write
pub trait Work<T>: AsyncFnOnce(&Session) -> T + Clone + Send + Sync + 'static {
    fn run(self, transaction: &Session) -> BoxFuture<'_, T>;
}

impl<T, W> Work<T> for W
where
    W: AsyncFnOnce(&Session) -> T + for<'tx> SendWork<'tx, T> + Clone + Send + Sync + 'static,
{
    fn run(self, transaction: &Session) -> BoxFuture<'_, T> {
        self(transaction).boxed()
    }
}

/// The bound that the future of an `AsyncFnOnce` is `Send`, which the language cannot express yet.
pub trait SendWork<'tx, T>:
    FnOnce(&'tx Session) -> <Self as SendWork<'tx, T>>::Future + Sized
{
    type Future: Future<Output = T> + Send + 'tx;
}

impl<'tx, T, W, F> SendWork<'tx, T> for W
where
    W: FnOnce(&'tx Session) -> F,
    F: Future<Output = T> + Send + 'tx,
{
    type Future = F;
}
