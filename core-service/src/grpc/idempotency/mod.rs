//! Requests that may be repeated: the first with a key does what it asks, and the same one again
//! is answered as the first was. A use case begins with [`Core::once`] and [`Core::replay`],
//! before it looks at anything that time changes, and ends with [`Core::write_once`]; what others
//! change between the two is a matter for [`Core::replay_or`]. What takes several transactions
//! is in [`steps`].

mod steps;

use std::sync::Arc;

use domain::{id::StoreId, violation::Violations};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use proto::iri::Collection;
use sha2::{Digest, Sha256};
use tonic::{Response, metadata::MetadataValue};
use uuid::Uuid;

pub(super) use self::steps::Step;
use super::{Core, caller::Caller};
use storage::{
    self, DatabaseTransaction,
    idempotency_keys::{self, Claim, Kept, Key},
};

use crate::{
    error::Error,
    vault::{Purpose, Vault},
};

/// How long an answer is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

const LONGEST_KEY: usize = 255;

/// How often what is kept too long is looked for.
const REMOVAL: std::time::Duration = std::time::Duration::from_mins(10);

/// How many are removed in one transaction: few, so that nobody waits for it.
const REMOVED_AT_ONCE: u64 = 200;

/// What makes a request the same as another; nothing for one without a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Once(Option<Request>);

#[derive(Clone, Copy, Debug)]
struct Request {
    key: Key,
    hash: [u8; 32],
    now: Timestamp,
}

/// What a transaction found or did.
enum Done<M> {
    Before(Kept),
    Now(M),
}

impl Core {
    /// Reads a request's key. Keys are told apart by their client and by `operation`: the rpc,
    /// and the resource it is called on if there is one.
    pub(super) fn once(
        &self,
        caller: &Caller,
        operation: &str,
        idempotency: Option<proto::Idempotency>,
    ) -> Result<Once, Error> {
        let Some(idempotency) = idempotency else {
            return Ok(Once(None));
        };
        let mut violations = Violations::new();
        if !is_key(&idempotency.key) {
            violations.add(
                "idempotency.key",
                "INVALID_IDEMPOTENCY_KEY",
                format!("must be 1 to {LONGEST_KEY} printable ASCII characters"),
            );
        }
        let hash = <[u8; 32]>::try_from(idempotency.request_hash);
        let hash = hash.map_err(|_| "must be 32 bytes");
        let field = "idempotency.request_hash";
        match violations.check(field, "INVALID_HASH", hash) {
            Some(hash) if violations.is_empty() => Ok(Once(Some(Request {
                key: Key {
                    // An operator belongs to none, and can have keys all the same.
                    store_id: caller
                        .store()
                        .map_or(StoreId(Uuid::nil()), |store| store.id),
                    api_client_id: caller.id,
                    hash: key_hash(operation, &idempotency.key),
                },
                hash,
                now: self.clock.now(),
            }))),
            _ => Err(Error::Invalid(violations)),
        }
    }

    /// As [`Core::once`], for an rpc that is called on a resource.
    pub(super) fn once_on(
        &self,
        caller: &Caller,
        rpc: &str,
        (collection, name): (Collection, &str),
        idempotency: Option<proto::Idempotency>,
    ) -> Result<Once, Error> {
        match collection.id(name) {
            Some(id) => self.once(caller, &format!("{rpc} {id}"), idempotency),
            // It will not be found; and the caller's words don't go into what keys are told
            // apart by.
            None => Ok(Once(None)),
        }
    }

    /// The answer to the same request before, if there was one. Fails if its key was another's.
    pub(super) async fn replay<M>(&self, once: Once) -> Result<Option<Response<M>>, Error>
    where
        M: prost::Message + Default,
    {
        let Some(request) = once.0 else {
            return Ok(None);
        };
        let reader = self.storage.reader();
        let kept = idempotency_keys::find(reader, request.key, request.expired()).await?;
        kept.map(|kept| request.answer_again(&self.vault, &kept))
            .transpose()
    }

    /// The answer to the same request, if it has come meanwhile: then this one failed for what
    /// that one has done, as when it took the last place of a slot. Else the failure.
    pub(super) async fn replay_or<M>(&self, once: Once, error: Error) -> Result<Response<M>, Error>
    where
        M: prost::Message + Default,
    {
        self.replay(once).await?.ok_or(error)
    }

    /// Does work in a transaction and keeps its answer in the same one, or gives the answer to
    /// the same request that came first, having waited for it if need be.
    pub(super) async fn write_once<M, W>(&self, once: Once, work: W) -> Result<Response<M>, Error>
    where
        M: prost::Message + Default + 'static,
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<M, Error>>
            + Send
            + Sync
            + 'static,
    {
        let Some(request) = once.0 else {
            return self.storage.write(work).await.map(Response::new);
        };
        let (work, vault) = (Arc::new(work), Arc::clone(&self.vault));
        let done = self
            .storage
            .write(move |transaction| {
                let (work, vault) = (Arc::clone(&work), Arc::clone(&vault));
                Box::pin(async move {
                    if let Claim::Taken(kept) = request.claim(transaction).await? {
                        return Ok::<_, Error>(Done::Before(kept));
                    }
                    let message = work(transaction).await?;
                    let answer = request.seal(&vault, &message);
                    idempotency_keys::keep(transaction, request.key, answer).await?;
                    Ok(Done::Now(message))
                })
            })
            .await?;
        match done {
            Done::Before(kept) => request.answer_again(&self.vault, &kept),
            Done::Now(message) => Ok(Response::new(message)),
        }
    }

    /// Removes what has been kept long enough, until told to stop.
    pub(crate) async fn remove_expired_answers(&self) {
        let mut moves = self.clock.moves();
        loop {
            if let Err(error) = self.remove_expired().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "kept answers could not be removed"
                );
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(REMOVAL) => {}
                () = moves.next() => {}
            }
        }
    }

    async fn remove_expired(&self) -> Result<(), Error> {
        let expired = expired(self.clock.now());
        loop {
            let reader = self.storage.reader();
            if !idempotency_keys::is_any_as_old(reader, expired).await? {
                return Ok(());
            }
            self.storage
                .write(move |transaction| {
                    Box::pin(async move {
                        let most = REMOVED_AT_ONCE;
                        Ok::<_, Error>(idempotency_keys::remove(transaction, expired, most).await?)
                    })
                })
                .await?;
        }
    }
}

impl Request {
    async fn claim(&self, transaction: &DatabaseTransaction) -> Result<Claim, Error> {
        let times = (self.now, self.expired());
        idempotency_keys::claim(transaction, self.key, self.hash, times)
            .await
            .map_err(|error| match error {
                error if error.is_lock_timeout() => Error::IdempotencyKeyInUse,
                error => error.into(),
            })
    }

    /// What was kept then is kept no longer.
    fn expired(&self) -> Timestamp {
        expired(self.now)
    }

    /// Answers can hold secrets, a new webhook's for one; and what is sealed for one key opens
    /// under no other.
    fn seal(&self, vault: &Vault, message: &impl prost::Message) -> Vec<u8> {
        let plain = message.encode_to_vec();
        vault.seal(Purpose::KeptAnswer, &self.context(), &plain)
    }

    fn context(&self) -> Vec<u8> {
        [self.key.api_client_id.0.as_bytes(), &self.key.hash[..]].concat()
    }

    /// What was sealed, if it was for this very request.
    fn open<M>(&self, vault: &Vault, kept: &Kept) -> Result<M, Error>
    where
        M: prost::Message + Default,
    {
        if kept.request_hash != self.hash {
            return Err(Error::IdempotencyKeyReused);
        }
        let plain = vault.unseal(Purpose::KeptAnswer, &self.context(), &kept.sealed_answer)?;
        let message = M::decode(plain.as_slice());
        Ok(message.map_err(|error| storage::Error::inconsistent("idempotency_keys", error))?)
    }

    fn answer_again<M>(&self, vault: &Vault, kept: &Kept) -> Result<Response<M>, Error>
    where
        M: prost::Message + Default,
    {
        Ok(replayed(self.open(vault, kept)?))
    }
}

/// An answer that was given before, which says so.
fn replayed<M>(message: M) -> Response<M> {
    let mut response = Response::new(message);
    let replayed = MetadataValue::from_static("true");
    response
        .metadata_mut()
        .insert(proto::IDEMPOTENT_REPLAYED, replayed);
    response
}

fn expired(now: Timestamp) -> Timestamp {
    now.checked_sub(KEPT).unwrap_or(Timestamp::MIN)
}

fn is_key(key: &str) -> bool {
    (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn key_hash(operation: &str, key: &str) -> [u8; 32] {
    // No operation has a line break in it, so that the two can't run together.
    Sha256::new()
        .chain_update(operation)
        .chain_update("\n")
        .chain_update(key)
        .finalize()
        .into()
}
