//! Requests that take several transactions, so that nobody waits long for any: each step keeps
//! how far the request is, under a key of its own, and the last one keeps the answer. Whoever
//! repeats the request before that, because the first broke off or at the same time, goes on with
//! it: all of them together do it once, and have one answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use tonic::Response;

use super::{Core, Once, Request, replayed};
use storage::{
    DatabaseTransaction,
    idempotency_keys::{self, Claim, Key},
};

use crate::{error::Error, vault::Vault};

/// What a transaction has come to: how far the request is, or its answer.
#[derive(Debug)]
pub(in crate::grpc) enum Step<P, M> {
    Unfinished(P),
    Finished(M),
}

/// What a transaction found or did.
enum Done<P, M> {
    Before(M),
    Now(Step<P, M>),
}

impl Core {
    /// Does a step of a request. `work` is told how far the steps before came; without a key
    /// `so_far` alone knows.
    pub(in crate::grpc) async fn write_step<P, M, W>(
        &self,
        once: Once,
        so_far: P,
        work: W,
    ) -> Result<Step<P, Response<M>>, Error>
    where
        P: prost::Message + Default + Clone + 'static,
        M: prost::Message + Default + 'static,
        W: for<'tx> Fn(&'tx DatabaseTransaction, P) -> BoxFuture<'tx, Result<Step<P, M>, Error>>
            + Send
            + Sync
            + 'static,
    {
        let (work, vault) = (Arc::new(work), Arc::clone(&self.vault));
        let done = self
            .storage
            .write(move |transaction| {
                let (work, vault) = (Arc::clone(&work), Arc::clone(&vault));
                let so_far = so_far.clone();
                Box::pin(async move {
                    match once.0 {
                        Some(request) => request.step(transaction, &vault, &*work).await,
                        None => work(transaction, so_far).await.map(Done::Now),
                    }
                })
            })
            .await?;
        Ok(match done {
            Done::Before(message) => Step::Finished(replayed(message)),
            Done::Now(Step::Finished(message)) => Step::Finished(Response::new(message)),
            Done::Now(Step::Unfinished(progress)) => Step::Unfinished(progress),
        })
    }
}

impl Request {
    async fn step<P, M, W>(
        &self,
        transaction: &DatabaseTransaction,
        vault: &Vault,
        work: &W,
    ) -> Result<Done<P, M>, Error>
    where
        P: prost::Message + Default,
        M: prost::Message + Default,
        W: for<'tx> Fn(&'tx DatabaseTransaction, P) -> BoxFuture<'tx, Result<Step<P, M>, Error>>,
    {
        let under_way = self.under_way();
        // From here on those who repeat the request wait for this step.
        let so_far = match under_way.claim(transaction).await? {
            Claim::Ours => P::default(),
            Claim::Taken(kept) => under_way.open(vault, &kept)?,
        };
        let answer = idempotency_keys::find(transaction, self.key, self.expired()).await?;
        if let Some(kept) = answer {
            return Ok(Done::Before(self.open(vault, &kept)?));
        }

        let step = work(transaction, so_far).await?;
        match &step {
            Step::Unfinished(progress) => {
                let kept = under_way.seal(vault, progress);
                idempotency_keys::keep(transaction, under_way.key, kept).await?;
            }
            Step::Finished(message) => {
                // Nobody else is about to take it: they wait for the key before it.
                self.claim(transaction).await?;
                let kept = self.seal(vault, message);
                idempotency_keys::keep(transaction, self.key, kept).await?;
            }
        }
        Ok(Done::Now(step))
    }

    /// The same request, under the key that keeps how far it is: no operation is called so.
    fn under_way(&self) -> Self {
        let hash = Sha256::new()
            .chain_update("under way\n")
            .chain_update(self.key.hash);
        Self {
            key: Key {
                hash: hash.finalize().into(),
                ..self.key
            },
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use domain::id::{ApiClientId, StoreId};

    use storage::{Storage, fixture};

    const FIRST: Request = Request {
        key: Key {
            store_id: StoreId(Uuid::nil()),
            api_client_id: ApiClientId(Uuid::nil()),
            hash: [1; 32],
        },
        hash: [2; 32],
        now: Timestamp::UNIX_EPOCH,
    };

    struct Desk {
        _directory: TempDir,
        storage: Arc<Storage>,
        vault: Arc<Vault>,
    }

    impl Desk {
        async fn open() -> Self {
            let (directory, storage) = fixture::sqlite().await;
            let key = directory.path().join("master.key");
            Self {
                vault: Arc::new(Vault::open_or_create(&key).unwrap()),
                _directory: directory,
                storage,
            }
        }

        /// Counts to three, a step each, and says so; as a new process that knows nothing of
        /// what was counted before.
        async fn count(&self, request: Request) -> Result<Done<u64, String>, Error> {
            self.step(request, |counted| match counted + 1 {
                3 => Ok(Step::Finished("three".to_owned())),
                counted => Ok(Step::Unfinished(counted)),
            })
            .await
        }

        async fn step(
            &self,
            request: Request,
            work: fn(u64) -> Result<Step<u64, String>, Error>,
        ) -> Result<Done<u64, String>, Error> {
            let vault = Arc::clone(&self.vault);
            self.storage
                .write(move |transaction| {
                    let vault = Arc::clone(&vault);
                    Box::pin(async move {
                        request
                            .step(transaction, &vault, &move |_, so_far| {
                                Box::pin(async move { work(so_far) })
                            })
                            .await
                    })
                })
                .await
        }
    }

    fn said(done: Result<Done<u64, String>, Error>) -> String {
        match done {
            Ok(Done::Before(answer)) => format!("{answer}, again"),
            Ok(Done::Now(Step::Finished(answer))) => answer,
            Ok(Done::Now(Step::Unfinished(counted))) => counted.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn whoever_repeats_it_goes_on_where_it_was_and_has_the_first_answer_in_the_end() {
        let desk = Desk::open().await;

        let mut answers = Vec::new();
        for _ in 0..5 {
            answers.push(said(desk.count(FIRST).await));
        }

        let expected = ["1", "2", "three", "three, again", "three, again"];
        assert_eq!(answers, expected);
    }

    #[tokio::test]
    async fn a_step_that_fails_has_not_been() {
        let desk = Desk::open().await;

        let first = said(desk.count(FIRST).await);
        let failed = desk.step(FIRST, |_| Err(Error::NoStore)).await;
        let second = said(desk.count(FIRST).await);

        assert_eq!((first.as_str(), second.as_str()), ("1", "2"));
        assert!(failed.is_err());
    }

    #[tokio::test]
    async fn a_key_is_taken_from_the_first_step_on_and_until_it_expires() {
        let desk = Desk::open().await;
        let other = Request {
            hash: [3; 32],
            ..FIRST
        };
        let later = Request {
            now: FIRST.now + SignedDuration::from_hours(7 * 24),
            ..other
        };

        let first = said(desk.count(FIRST).await);
        let during = desk.count(other).await;
        let second = said(desk.count(FIRST).await);
        let third = said(desk.count(FIRST).await);
        let after = desk.count(other).await;
        let expired = said(desk.count(later).await);

        assert_eq!([first, second, third], ["1", "2", "three"]);
        for refused in [during, after] {
            assert!(matches!(refused, Err(Error::IdempotencyKeyReused)));
        }
        assert_eq!(expired, "1");
    }
}
