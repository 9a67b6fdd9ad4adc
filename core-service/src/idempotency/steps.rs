//! Idempotent requests that take several transactions, so that none blocks other writes for long.
//! Each step stores the request's progress under a separate key, and the last one stores the
//! response. A repetition before that, after a failure or concurrently, continues from the stored
//! progress: all repetitions together do the work once and return one response.

use sha2::{Digest, Sha256};
use tonic::Response;

use super::request::{KeyedRequest, expired_before};
use storage::{
    Session,
    idempotency_keys::{self, Acquisition, Key},
};

use crate::{error::Error, secrets::secret_box::SecretBox};

/// The result of one step: the request's progress, or its response.
#[derive(Debug)]
pub(crate) enum Step<P, M> {
    Unfinished(P),
    Finished(M),
}

impl<P, M> Step<P, M> {
    pub(super) fn into_response(self) -> Step<P, Response<M>> {
        match self {
            Self::Unfinished(progress) => Step::Unfinished(progress),
            Self::Finished(message) => Step::Finished(Response::new(message)),
        }
    }
}

impl KeyedRequest {
    pub(super) async fn step<P, M, F>(
        &self,
        transaction: &Session,
        secret_box: &SecretBox,
        work: impl FnOnce(Session, P) -> F,
    ) -> Result<Step<P, Response<M>>, Error>
    where
        P: prost::Message + Default,
        M: prost::Message + Default,
        F: Future<Output = Result<Step<P, M>, Error>>,
    {
        let in_progress = self.in_progress();
        // From here on, concurrent repetitions wait for this step.
        let progress = match in_progress.acquire(transaction).await? {
            Acquisition::Acquired => P::default(),
            Acquisition::Stored(stored) => in_progress.decrypt(secret_box, &stored)?,
        };
        let response =
            idempotency_keys::find(transaction, self.key, expired_before(self.now)).await?;
        if let Some(stored) = response {
            return Ok(Step::Finished(self.replay(secret_box, &stored)?));
        }

        let step = work(transaction.clone(), progress).await?;
        match &step {
            Step::Unfinished(progress) => {
                let progress = in_progress.encrypt(secret_box, progress);
                idempotency_keys::store_response(transaction, in_progress.key, progress).await?;
            }
            Step::Finished(message) => {
                // Finds no response: concurrent repetitions wait for the key of the progress.
                self.acquire(transaction).await?;
                let response = self.encrypt(secret_box, message);
                idempotency_keys::store_response(transaction, self.key, response).await?;
            }
        }
        Ok(step.into_response())
    }

    /// The same request under the key of its progress, which no operation's key can equal.
    fn in_progress(&self) -> Self {
        let hash = Sha256::new()
            .chain_update("in progress\n")
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
    use std::sync::Arc;

    use jiff::{SignedDuration, Timestamp};
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use domain::id::{ApiClientId, StoreId};

    use storage::{Storage, fixture};

    const FIRST: KeyedRequest = KeyedRequest {
        key: Key {
            store_id: StoreId(Uuid::nil()),
            api_client_id: ApiClientId(Uuid::nil()),
            hash: [1; 32],
        },
        hash: [2; 32],
        delivery_id: None,
        now: Timestamp::UNIX_EPOCH,
    };

    struct Counter {
        _directory: TempDir,
        storage: Arc<Storage>,
        secret_box: Arc<SecretBox>,
    }

    impl Counter {
        async fn open() -> Self {
            let (directory, storage) = fixture::sqlite().await;
            let key = directory.path().join("master.key");
            Self {
                secret_box: Arc::new(SecretBox::open_or_create(&key).unwrap()),
                _directory: directory,
                storage,
            }
        }

        /// Counts one step, of three. Only the stored progress passes from step to step.
        async fn count(&self, request: KeyedRequest) -> Result<Step<u64, Response<String>>, Error> {
            self.step(request, |counted| match counted + 1 {
                3 => Ok(Step::Finished("three".to_owned())),
                counted => Ok(Step::Unfinished(counted)),
            })
            .await
        }

        async fn step(
            &self,
            request: KeyedRequest,
            work: fn(u64) -> Result<Step<u64, String>, Error>,
        ) -> Result<Step<u64, Response<String>>, Error> {
            let secret_box = Arc::clone(&self.secret_box);
            self.storage
                .write(move |transaction| async move {
                    request
                        .step(&transaction, &secret_box, move |_, progress| async move {
                            work(progress)
                        })
                        .await
                })
                .await
        }
    }

    fn describe(done: Result<Step<u64, Response<String>>, Error>) -> String {
        match done {
            Ok(Step::Finished(response)) => {
                let replayed = response.metadata().contains_key(proto::IDEMPOTENT_REPLAYED);
                let suffix = if replayed { ", replayed" } else { "" };
                format!("{}{suffix}", response.get_ref())
            }
            Ok(Step::Unfinished(counted)) => counted.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn repetitions_continue_from_the_stored_progress_and_replay_the_first_response() {
        let counter = Counter::open().await;

        let mut responses = Vec::new();
        for _ in 0..5 {
            responses.push(describe(counter.count(FIRST).await));
        }

        let expected = ["1", "2", "three", "three, replayed", "three, replayed"];
        assert_eq!(responses, expected);
    }

    #[tokio::test]
    async fn a_failed_step_stores_no_progress() {
        let counter = Counter::open().await;

        let first = describe(counter.count(FIRST).await);
        let failed = counter.step(FIRST, |_| Err(Error::NoStore)).await;
        let second = describe(counter.count(FIRST).await);

        assert_eq!((first.as_str(), second.as_str()), ("1", "2"));
        assert!(failed.is_err());
    }

    #[tokio::test]
    async fn a_key_is_in_use_from_the_first_step_until_it_expires() {
        let counter = Counter::open().await;
        let other = KeyedRequest {
            hash: [3; 32],
            ..FIRST
        };
        let later = KeyedRequest {
            now: FIRST.now + SignedDuration::from_hours(7 * 24),
            ..other
        };

        let first = describe(counter.count(FIRST).await);
        let during = counter.count(other).await;
        let second = describe(counter.count(FIRST).await);
        let third = describe(counter.count(FIRST).await);
        let after = counter.count(other).await;
        let expired = describe(counter.count(later).await);

        assert_eq!([first, second, third], ["1", "2", "three"]);
        for error in [during, after] {
            assert!(matches!(error, Err(Error::IdempotencyKeyReused)));
        }
        assert_eq!(expired, "1");
    }
}
