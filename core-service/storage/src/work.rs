//! What runs in a transaction.

use super::session::Session;

/// The work of a transaction ([`Storage::write`]), over values that each run gets a clone of. It gets
/// a clone of the session, which must not outlive it.
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
