//! What runs in a transaction.

use futures_util::future::BoxFuture;

use super::session::Session;

/// The work of a transaction ([`Storage::write`]), over values that each run gets a clone of. An
/// `async` closure would need no box, but rustc 1.95 fails on it when it compiles incrementally.
///
/// [`Storage::write`]: super::Storage::write
pub trait Work<T>:
    for<'tx> FnOnce(&'tx Session) -> BoxFuture<'tx, T> + Clone + Send + Sync + 'static
{
}

impl<T, W> Work<T> for W where
    W: for<'tx> FnOnce(&'tx Session) -> BoxFuture<'tx, T> + Clone + Send + Sync + 'static
{
}
