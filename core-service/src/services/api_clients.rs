//! API clients: creates, lists and disables them and rotates their secrets, for operators.

use domain::{
    api_client::{ApiClient, Scope, Scopes, TaskStatus},
    api_secrets::{ApiSecrets, DEFAULT_OVERLAP, MAX_OVERLAP, SecretHash},
    id::ApiClientId,
    violation::Violations,
};
use jiff::SignedDuration;
use process::random;
use proto::iri::Collection;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::{RequestKey, begin_or_replay},
    messages,
    planning::validation,
};

#[tonic::async_trait]
impl proto::api_clients_server::ApiClients for Services {
    async fn create_api_client(
        &self,
        request: Request<proto::CreateApiClientRequest>,
    ) -> Reply<proto::ApiClient> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let created = self.insert_client(&caller, request).await?;
        caller.audit("CreateApiClient", &created.get_ref().name, &created);
        Ok(created)
    }

    async fn list_api_clients(
        &self,
        request: Request<proto::ListApiClientsRequest>,
    ) -> Reply<proto::ListApiClientsResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let name = request.store;
        let store_id = if name.is_empty() {
            None
        } else {
            Some(messages::find_store(&self.storage, &name).await?.id)
        };
        let clients = storage::api_clients::list(self.storage.reader(), store_id)
            .await
            .map_err(Error::from)?;
        Ok(Response::new(proto::ListApiClientsResponse {
            api_clients: clients.iter().map(|client| message(client, None)).collect(),
        }))
    }

    async fn disable_api_client(
        &self,
        request: Request<proto::DisableApiClientRequest>,
    ) -> Reply<proto::ApiClient> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let (rpc, name, now) = ("DisableApiClient", &request.name, self.clock.now());
        let key = self
            .idempotency
            .read_key(&caller, rpc, name, request.idempotency)?;
        let disabled = self.change_client(&caller, name, key, None, move |client| {
            client.disabled_at.get_or_insert(now);
            Ok(())
        });
        let disabled = disabled.await?;
        caller.audit(rpc, name, &disabled);
        Ok(disabled)
    }

    async fn rotate_api_client_secret(
        &self,
        request: Request<proto::RotateApiClientSecretRequest>,
    ) -> Reply<proto::ApiClient> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let overlap = request.overlap_seconds.map_or(DEFAULT_OVERLAP, |seconds| {
            SignedDuration::from_secs(seconds.into())
        });
        if overlap > MAX_OVERLAP {
            let (maximum, given) = (MAX_OVERLAP.as_secs(), overlap.as_secs());
            let description = format!("must be at most {maximum}, not {given}");
            return Err(Error::invalid("overlap_seconds", "OUT_OF_RANGE", description).into());
        }
        let secret = random::token::<32>();
        let (hash, now) = (SecretHash::of(&secret), self.clock.now());
        let (rpc, name) = ("RotateApiClientSecret", &request.name);
        let key = self
            .idempotency
            .read_key(&caller, rpc, name, request.idempotency)?;
        let rotated = self.change_client(&caller, name, key, Some(secret), move |client| {
            if client.disabled_at.is_some() {
                return Err(Error::Conflict(
                    "CLIENT_DISABLED",
                    "the client is disabled; create a new one".to_owned(),
                ));
            }
            let rotated = client.secrets.rotate(hash, overlap, now);
            rotated.map_err(|error| Error::Conflict("TOO_MANY_SECRETS", error))
        });
        let rotated = rotated.await?;
        caller.audit(rpc, name, &rotated);
        Ok(rotated)
    }

    async fn get_current_api_client(
        &self,
        request: Request<proto::GetCurrentApiClientRequest>,
    ) -> Reply<proto::ApiClient> {
        let (caller, _) = Caller::of(request)?;

        let client = storage::api_clients::find(self.storage.reader(), caller.id)
            .await
            .map_err(Error::from)?
            .ok_or_else(|| storage::Error::inconsistent("api_clients", "the caller does not exist"))
            .map_err(Error::from)?;
        Ok(Response::new(message(&client, None)))
    }
}

impl Services {
    /// Creates a client, or replays the response to an earlier request.
    async fn insert_client(
        &self,
        caller: &Caller,
        mut request: proto::CreateApiClientRequest,
    ) -> Result<Response<proto::ApiClient>, Error> {
        let idempotency = request.idempotency.take();
        let request_key = begin_or_replay!(self, caller, "CreateApiClient", "", idempotency);
        let (client, secret) = self.new_client(request).await?;

        let reply = message(&client, Some(secret));
        let audit = caller.audit.clone();
        self.idempotency
            .write(request_key, move |transaction| async move {
                storage::api_clients::insert(&transaction, &client).await?;
                let name = Collection::ApiClients.name(client.id);
                audit.record(&transaction, client.store_id, name).await?;
                Ok(reply)
            })
            .await
    }

    async fn new_client(
        &self,
        request: proto::CreateApiClientRequest,
    ) -> Result<(ApiClient, String), Error> {
        let mut violations = Violations::new();
        let display_name =
            validation::required_name("display_name", &request.display_name, &mut violations);
        let mut scopes = Vec::new();
        for (index, name) in request.scopes.iter().enumerate() {
            let field = format!("scopes[{index}]");
            let parsed = violations.check(&field, "UNKNOWN_SCOPE", name.parse::<Scope>());
            if !request.store.is_empty()
                && let Some(scope) = parsed
                && !scope.requires_store()
            {
                violations.add(
                    field,
                    "INTERNAL_SCOPE",
                    format!(
                        "{scope} is only for the platform's own programs: omit it, or create a \
                         separate client without a store for such a program"
                    ),
                );
            }
            scopes.extend(parsed);
        }
        let is_courier = scopes.contains(&Scope::Courier);
        if is_courier && request.courier.is_empty() {
            violations.add("courier", "REQUIRED", "is required for the scope courier");
        }
        if !request.courier.is_empty() && (scopes != [Scope::Courier] || !request.store.is_empty())
        {
            let description = "a courier's client has the scope courier alone, and no store";
            violations.add("courier", "CONFLICT", description);
        }
        let task_status = read_task_status(&request, &mut violations);
        if request.scopes.is_empty() {
            violations.add("scopes", "REQUIRED", "at least one is required");
        }
        let store = if request.store.is_empty() {
            None
        } else {
            Some(messages::find_store(&self.storage, &request.store).await?)
        };
        if store.is_none() && scopes.iter().any(|scope| scope.requires_store()) {
            violations.add(
                "store",
                "REQUIRED",
                "is required for the scopes deliveries and tasks",
            );
        }
        let courier = if request.courier.is_empty() {
            None
        } else {
            Some(self.find_courier(&request.courier).await?)
        };
        let default_address = match request.default_address {
            Some(draft) => {
                self.planner
                    .default_address(draft, store.as_ref(), &mut violations)
                    .await?
            }
            None => None,
        };
        Error::check(violations)?;
        let secret = random::token::<32>();
        let scopes = Scopes::new(scopes);
        let client = ApiClient {
            id: ApiClientId::new(),
            store_id: store.map(|store| store.id),
            courier_id: courier.map(|courier| courier.id),
            display_name,
            api_key: random::token::<16>(),
            secrets: ApiSecrets::new(SecretHash::of(&secret)),
            task_status: task_status.unwrap_or_else(|| TaskStatus::default_of(&scopes)),
            scopes,
            default_address,
            created_at: self.clock.now(),
            disabled_at: None,
        };
        Ok((client, secret))
    }

    /// Changes a client under a lock, and returns it with its new secret if there is one.
    async fn change_client(
        &self,
        caller: &Caller,
        name: &str,
        request_key: RequestKey,
        secret: Option<String>,
        change: impl Fn(&mut ApiClient) -> Result<(), Error> + Clone + Send + Sync + 'static,
    ) -> Result<Response<proto::ApiClient>, Error> {
        let id = ApiClientId(messages::id_in(Collection::ApiClients, name)?);
        let audit = caller.audit.clone();
        let changed = self
            .idempotency
            .write(request_key, move |transaction| async move {
                let mut client = storage::api_clients::find_and_lock(&transaction, id)
                    .await?
                    .ok_or_else(|| Error::NotFound(Collection::ApiClients.name(id)))?;
                change(&mut client)?;
                storage::api_clients::update(&transaction, &client).await?;
                let name = Collection::ApiClients.name(id);
                audit.record(&transaction, client.store_id, name).await?;
                // The receivers of a disabled client must get no further notifications. Their
                // backlogs are cancelled in the background.
                let disabled = match (client.store_id, client.disabled_at) {
                    (Some(store), Some(at)) => {
                        storage::webhooks::disable_of_client(&transaction, store, id, at).await?
                    }
                    _ => 0,
                };
                Ok(proto::ApiClient {
                    disabled_webhooks: u32::try_from(disabled).unwrap_or(u32::MAX),
                    ..message(&client, secret)
                })
            })
            .await;
        // Even if it failed: it may be committed.
        self.authenticator.invalidate();
        changed
    }
}

/// None if the request leaves it to the default.
fn read_task_status(
    request: &proto::CreateApiClientRequest,
    violations: &mut Violations,
) -> Option<TaskStatus> {
    if request.task_status == 0 {
        return None;
    }
    // Not `request.task_status()`, which leaves an unknown one to the default.
    let status = proto::api_client::TaskStatus::try_from(request.task_status).ok();
    let mut known = TaskStatus::ALL.into_iter();
    let status = status.and_then(|status| known.find(|known| task_status(*known) == status));
    let status = status.ok_or("must be SPECIFIED or FULL");
    violations.check("task_status", "UNKNOWN_STATUS", status)
}

/// A client, with its secret only if the secret is new.
fn message(client: &ApiClient, secret: Option<String>) -> proto::ApiClient {
    proto::ApiClient {
        name: Collection::ApiClients.name(client.id),
        display_name: client.display_name.clone(),
        store: client
            .store_id
            .map(|id| Collection::Stores.name(id))
            .unwrap_or_default(),
        courier: client
            .courier_id
            .map(|id| Collection::Couriers.name(id))
            .unwrap_or_default(),
        task_status: task_status(client.task_status).into(),
        api_key: client.api_key.clone(),
        api_secret: secret.unwrap_or_default(),
        scopes: client
            .scopes
            .iter()
            .map(|scope| scope.as_str().to_owned())
            .collect(),
        default_address: client.default_address.clone().map(messages::address),
        create_time: Some(messages::timestamp(client.created_at)),
        disable_time: client.disabled_at.map(messages::timestamp),
        disabled_webhooks: 0,
    }
}

fn task_status(status: TaskStatus) -> proto::api_client::TaskStatus {
    match status {
        TaskStatus::Specified => proto::api_client::TaskStatus::Specified,
        TaskStatus::Full => proto::api_client::TaskStatus::Full,
    }
}
