//! Idempotent requests: the response to the first request with a key is stored in the request's
//! transaction and replayed for repetitions. A use case begins with [`Idempotency::begin`], before it
//! reads anything that depends on time, and ends with [`Idempotency::write`], or with
//! [`Idempotency::write_step`] if it takes several transactions.
//! [`Idempotency::replay_or`] handles conflicts with a concurrent request.

mod erasing;
mod reencrypting;
mod request;
mod steps;

use std::sync::Arc;

use process::clock::Clock;
use proto::iri::Collection;
use tonic::Response;

use self::request::KeyedRequest;
pub(crate) use self::{
    request::{RequestKey, expired_before},
    steps::Step,
};
use crate::{auth::caller::Caller, error::Error, secrets::secret_box::SecretBox};
use storage::{
    Session, Storage, Work,
    idempotency_keys::{self, Acquisition},
};

/// A call of an rpc on the resource with a name.
pub(crate) struct ResourceCall<'a> {
    pub(crate) rpc: &'static str,
    pub(crate) name: &'a str,
    pub(crate) idempotency: Option<proto::Idempotency>,
}

impl<'a> ResourceCall<'a> {
    pub(crate) fn new(
        rpc: &'static str,
        name: &'a str,
        idempotency: Option<proto::Idempotency>,
    ) -> Self {
        Self {
            rpc,
            name,
            idempotency,
        }
    }
}

/// Runs requests idempotently.
pub(crate) struct Idempotency {
    pub(crate) storage: Arc<Storage>,
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) clock: Clock,
}

impl Idempotency {
    /// Begins a request: reads its key, and the stored response, if any. The scope of a key is its
    /// client and `operation`: the rpc, and the resource that it is called on, if any. Fails if the key
    /// belongs to another request.
    pub(crate) async fn begin<M>(
        &self,
        caller: &Caller,
        operation: &str,
        idempotency: Option<proto::Idempotency>,
    ) -> Result<(RequestKey, Option<Response<M>>), Error>
    where
        M: prost::Message + Default,
    {
        let request_key = self.read_key(caller, operation, idempotency)?;
        Ok((request_key, self.replay(request_key).await?))
    }

    /// Like [`Self::begin`], for an rpc that is called on a resource.
    pub(crate) async fn begin_on<M>(
        &self,
        caller: &Caller,
        collection: Collection,
        call: ResourceCall<'_>,
    ) -> Result<(RequestKey, Option<Response<M>>), Error>
    where
        M: prost::Message + Default,
    {
        let request_key = self.read_key_on(caller, collection, call)?;
        Ok((request_key, self.replay(request_key).await?))
    }

    pub(crate) fn read_key(
        &self,
        caller: &Caller,
        operation: &str,
        idempotency: Option<proto::Idempotency>,
    ) -> Result<RequestKey, Error> {
        let now = self.clock.now();
        idempotency
            .map(|idempotency| KeyedRequest::parse(caller, operation, idempotency, now))
            .transpose()
    }

    pub(crate) fn read_key_on(
        &self,
        caller: &Caller,
        collection: Collection,
        call: ResourceCall<'_>,
    ) -> Result<RequestKey, Error> {
        // Otherwise the resource will not be found, and unvalidated input must not become part of a
        // key's scope.
        let Some(id) = collection.id(call.name) else {
            return Ok(None);
        };
        self.read_key(caller, &format!("{} {id}", call.rpc), call.idempotency)
    }

    async fn replay<M>(&self, request_key: RequestKey) -> Result<Option<Response<M>>, Error>
    where
        M: prost::Message + Default,
    {
        let Some(request) = request_key else {
            return Ok(None);
        };
        let reader = self.storage.reader();
        let stored =
            idempotency_keys::find(reader, request.key, expired_before(request.now)).await?;
        stored
            .map(|stored| request.replay(&self.secret_box, &stored))
            .transpose()
    }

    /// Returns the response of a concurrent repetition if one has been stored meanwhile: the
    /// repetition may have made this request fail, for example by booking the time slot. Else
    /// returns `error`.
    pub(crate) async fn replay_or<M>(
        &self,
        request_key: RequestKey,
        error: Error,
    ) -> Result<Response<M>, Error>
    where
        M: prost::Message + Default,
    {
        self.replay(request_key).await?.ok_or(error)
    }

    /// Runs `work` in a transaction that also stores its response, or replays the response of the
    /// first request with the key, after waiting for it if it is in progress.
    pub(crate) async fn write<M>(
        &self,
        request_key: RequestKey,
        work: impl Work<Result<M, Error>>,
    ) -> Result<Response<M>, Error>
    where
        M: prost::Message + Default + 'static,
    {
        let Some(request) = request_key else {
            return self.storage.write(work).await.map(Response::new);
        };
        let secret_box = Arc::clone(&self.secret_box);
        self.storage
            .write(move |transaction| async move {
                if let Acquisition::Stored(stored) = request.acquire(&transaction).await? {
                    return request.replay(&secret_box, &stored);
                }
                let message = work(transaction.clone()).await?;
                let response = request.encrypt(&secret_box, &message);
                idempotency_keys::store_response(&transaction, request.key, response).await?;
                Ok(Response::new(message))
            })
            .await
    }

    /// Runs one step of a request. `work` gets the progress of the previous steps: with a key, the
    /// stored progress (the default before the first step); without a key, `progress`.
    pub(crate) async fn write_step<P, M, F>(
        &self,
        request_key: RequestKey,
        progress: P,
        work: impl FnOnce(Session, P) -> F + Clone + Send + Sync + 'static,
    ) -> Result<Step<P, Response<M>>, Error>
    where
        P: prost::Message + Default + Clone + 'static,
        M: prost::Message + Default + 'static,
        F: Future<Output = Result<Step<P, M>, Error>> + Send + 'static,
    {
        let secret_box = Arc::clone(&self.secret_box);
        self.storage
            .write(move |transaction| async move {
                match request_key {
                    Some(request) => request.step(&transaction, &secret_box, work).await,
                    None => work(transaction, progress).await.map(Step::into_response),
                }
            })
            .await
    }
}
