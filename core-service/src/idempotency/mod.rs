//! Idempotent requests: the response to the first request with a key is stored in the request's
//! transaction and replayed for repetitions. A use case begins with [`begin_or_replay`], before it
//! reads anything that depends on time, and ends with [`Idempotency::write`], or with
//! [`Idempotency::write_step`] if it takes several transactions.
//! [`Idempotency::replay_or`] handles conflicts with a concurrent request.

mod command_response;
mod erasing;
mod reencrypting;
mod request;
mod steps;

use std::sync::Arc;

use process::clock::Clock;
use tonic::Response;

use self::request::KeyedRequest;
pub(crate) use self::{
    command_response::CommandResponse,
    request::{RequestKey, expired_before},
    steps::Step,
};
use crate::{auth::caller::Caller, error::Error, secrets::secret_box::SecretBox};
use storage::{
    Session, Storage, Work,
    idempotency_keys::{self, Acquisition, NewResponse},
};

/// The key of a call that is new, if it has one; a stored response is returned from the calling function. Takes what
/// [`Idempotency::read_key`] takes. Fails if the key belongs to another request.
macro_rules! begin_or_replay {
    ($services:expr, $caller:expr, $rpc:expr, $resource:expr, $idempotency:expr) => {
        match $idempotency {
            None => None,
            Some(idempotency) => {
                let idempotent = &$services.idempotency;
                let request_key =
                    idempotent.read_key($caller, $rpc, $resource, Some(idempotency))?;
                if let Some(reply) = idempotent.replay(request_key).await? {
                    return Ok(reply);
                }
                request_key
            }
        }
    };
}
pub(crate) use begin_or_replay;

pub(crate) struct Idempotency {
    pub(crate) storage: Arc<Storage>,
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) clock: Clock,
}

impl Idempotency {
    /// The key of a request, if it has one. Its scope is the client, the rpc, and the name of the resource that the
    /// rpc is called on; empty if there is none.
    pub(crate) fn read_key(
        &self,
        caller: &Caller,
        rpc: &str,
        resource: &str,
        idempotency: Option<proto::Idempotency>,
    ) -> Result<RequestKey, Error> {
        let now = self.clock.now();
        let operation = match resource.rsplit_once('/') {
            Some((_, id)) => format!("{rpc} {id}"),
            None => rpc.to_owned(),
        };
        idempotency
            .map(|idempotency| KeyedRequest::parse(caller, &operation, idempotency, now))
            .transpose()
    }

    /// The stored response of a request, marked as a replay.
    pub(crate) async fn replay<M>(
        &self,
        request_key: RequestKey,
    ) -> Result<Option<Response<M>>, Error>
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

    /// What to store with the work of a request, unless another request has the key.
    pub(crate) fn new_response(
        &self,
        request: KeyedRequest,
        message: &impl prost::Message,
    ) -> NewResponse {
        NewResponse {
            key: request.key,
            request: request.request(),
            encrypted_response: request.encrypt(&self.secret_box, message),
            created_at: request.now,
        }
    }

    /// Returns the response of a concurrent repetition if one has been stored: the
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
        let work = move |transaction| async move { Ok((work(transaction).await?, ())) };
        let (response, _) = self.write_with(request_key, work).await?;
        Ok(response)
    }

    /// Like [`Self::write`], of work that also returns what is to be done after the commit; `None` for a
    /// replay.
    pub(crate) async fn write_with<M, A>(
        &self,
        request_key: RequestKey,
        work: impl Work<Result<(M, A), Error>>,
    ) -> Result<(Response<M>, Option<A>), Error>
    where
        M: prost::Message + Default + 'static,
        A: Send + 'static,
    {
        let Some(request) = request_key else {
            let (message, after) = self.storage.write(work).await?;
            return Ok((Response::new(message), Some(after)));
        };
        let secret_box = Arc::clone(&self.secret_box);
        self.storage
            .write(move |transaction| async move {
                if let Acquisition::Stored(stored) = request.acquire(&transaction).await? {
                    return Ok((request.replay(&secret_box, &stored)?, None));
                }
                let (message, after) = work(transaction.clone()).await?;
                let response = request.encrypt(&secret_box, &message);
                idempotency_keys::store_response(&transaction, request.key, response).await?;
                Ok((Response::new(message), Some(after)))
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
