//! API clients: creates, lists and disables them and rotates their secrets, for operators.

use std::sync::Arc;

use domain::{
    api_client::{ApiClient, Scope, Scopes},
    api_secrets::{ApiSecrets, DEFAULT_OVERLAP, MAX_OVERLAP, SecretHash},
    id::ApiClientId,
    violation::Violations,
};
use jiff::SignedDuration;
use process::{clock::Clock, random};
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{
    address_geocoder::AddressGeocoder, authenticator::Authenticator, lookup, messages, validation,
};
use storage::Storage;

use crate::error::Error;

pub(super) struct ApiClients {
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) storage: Arc<Storage>,
    pub(super) clock: Clock,
    pub(super) geocoder: Arc<AddressGeocoder>,
}

#[tonic::async_trait]
impl proto::api_clients_server::ApiClients for ApiClients {
    async fn create_api_client(
        &self,
        request: Request<proto::CreateApiClientRequest>,
    ) -> Result<Response<proto::ApiClient>, Status> {
        let caller = self.authenticator.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let (client, secret) = self.new_client(request.into_inner()).await?;

        let reply = messages::api_client(&client, Some(secret));
        self.storage
            .write(move |transaction| {
                let client = client.clone();
                Box::pin(async move {
                    storage::api_clients::insert(transaction, &client).await?;
                    Ok::<_, Error>(())
                })
            })
            .await?;
        Ok(Response::new(reply))
    }

    async fn list_api_clients(
        &self,
        request: Request<proto::ListApiClientsRequest>,
    ) -> Result<Response<proto::ListApiClientsResponse>, Status> {
        let caller = self.authenticator.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let name = request.into_inner().store;
        let store_id = if name.is_empty() {
            None
        } else {
            Some(lookup::store(&self.storage, &name).await?.id)
        };
        let clients = storage::api_clients::list(self.storage.reader(), store_id)
            .await
            .map_err(Error::from)?;
        Ok(Response::new(proto::ListApiClientsResponse {
            api_clients: clients
                .iter()
                .map(|client| messages::api_client(client, None))
                .collect(),
        }))
    }

    async fn disable_api_client(
        &self,
        request: Request<proto::DisableApiClientRequest>,
    ) -> Result<Response<proto::ApiClient>, Status> {
        let caller = self.authenticator.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let now = self.clock.now();
        let client = self
            .change_client(&request.into_inner().name, move |client| {
                client.disabled_at.get_or_insert(now);
                Ok(())
            })
            .await?;
        Ok(Response::new(messages::api_client(&client, None)))
    }

    async fn rotate_api_client_secret(
        &self,
        request: Request<proto::RotateApiClientSecretRequest>,
    ) -> Result<Response<proto::ApiClient>, Status> {
        let caller = self.authenticator.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let request = request.into_inner();
        let overlap = request.overlap_seconds.map_or(DEFAULT_OVERLAP, |seconds| {
            SignedDuration::from_secs(seconds.into())
        });
        if overlap > MAX_OVERLAP {
            let mut violations = Violations::new();
            violations.add(
                "overlap_seconds",
                "OUT_OF_RANGE",
                format!(
                    "must be at most {}, not {}",
                    MAX_OVERLAP.as_secs(),
                    overlap.as_secs()
                ),
            );
            return Err(Error::Invalid(violations).into());
        }
        let secret = random::token::<32>();
        let (hash, now) = (SecretHash::of(&secret), self.clock.now());
        let client = self
            .change_client(&request.name, move |client| {
                if client.disabled_at.is_some() {
                    return Err(Error::Conflict {
                        reason: "CLIENT_DISABLED",
                        message: "the client is disabled; create a new one".to_owned(),
                    });
                }
                let rotated = client.secrets.rotate(hash, overlap, now);
                rotated.map_err(|error| Error::Conflict {
                    reason: "TOO_MANY_SECRETS",
                    message: error.to_string(),
                })
            })
            .await?;
        Ok(Response::new(messages::api_client(&client, Some(secret))))
    }

    async fn get_current_api_client(
        &self,
        request: Request<proto::GetCurrentApiClientRequest>,
    ) -> Result<Response<proto::ApiClient>, Status> {
        let caller = self.authenticator.authenticate(request.metadata()).await?;

        let client = storage::api_clients::find(self.storage.reader(), caller.id)
            .await
            .map_err(Error::from)?
            .ok_or_else(|| storage::Error::inconsistent("api_clients", "the caller does not exist"))
            .map_err(Error::from)?;
        Ok(Response::new(messages::api_client(&client, None)))
    }
}

impl ApiClients {
    async fn new_client(
        &self,
        request: proto::CreateApiClientRequest,
    ) -> Result<(ApiClient, String), Error> {
        let mut violations = Violations::new();
        let display_name =
            validation::display_name("display_name", &request.display_name, &mut violations);
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
        if request.scopes.is_empty() {
            violations.add("scopes", "REQUIRED", "at least one is required");
        }
        let store = if request.store.is_empty() {
            None
        } else {
            Some(lookup::store(&self.storage, &request.store).await?)
        };
        if store.is_none() && scopes.iter().any(|scope| scope.requires_store()) {
            violations.add(
                "store",
                "REQUIRED",
                "is required for the scopes deliveries and tasks",
            );
        }
        let default_address = match request.default_address {
            Some(draft) => {
                self.geocoder
                    .default_address(draft, store.as_ref(), &mut violations)
                    .await?
            }
            None => None,
        };
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        let secret = random::token::<32>();
        let client = ApiClient {
            id: ApiClientId::new(),
            store_id: store.map(|store| store.id),
            display_name,
            api_key: random::token::<16>(),
            secrets: ApiSecrets::new(SecretHash::of(&secret)),
            scopes: Scopes::new(scopes),
            default_address,
            created_at: self.clock.now(),
            disabled_at: None,
        };
        Ok((client, secret))
    }

    async fn change_client(
        &self,
        name: &str,
        change: impl Fn(&mut ApiClient) -> Result<(), Error> + Clone + Send + Sync + 'static,
    ) -> Result<ApiClient, Error> {
        let not_found = Error::NotFound {
            name: name.to_owned(),
        };
        let Some(id) = Collection::ApiClients.id(name) else {
            return Err(not_found);
        };
        let changed = self
            .storage
            .write(move |transaction| {
                let change = change.clone();
                Box::pin(async move {
                    let id = ApiClientId(id);
                    let Some(mut client) =
                        storage::api_clients::find_and_lock(transaction, id).await?
                    else {
                        return Ok::<_, Error>(None);
                    };
                    change(&mut client)?;
                    storage::api_clients::update(transaction, &client).await?;
                    Ok(Some(client))
                })
            })
            .await?;
        self.authenticator.invalidate();
        changed.ok_or(not_found)
    }
}
