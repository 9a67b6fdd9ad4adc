//! A core that does not confirm all writes, as one whose commits hang.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proto::{
    ApiClient, CreateApiClientRequest, DisableApiClientRequest, GetCurrentApiClientRequest,
    IssueTokenRequest, ListApiClientsRequest, ListApiClientsResponse, ListPublicKeysRequest,
    ListPublicKeysResponse, RotateApiClientSecretRequest,
    api_clients_client::ApiClientsClient,
    api_clients_server::{ApiClients, ApiClientsServer},
    tokens_client::TokensClient,
    tokens_server::{Tokens, TokensServer},
};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{
    Request, Response, Status, async_trait,
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};

/// Forwards calls to a core, but answers `UNAVAILABLE` to the first creations of API clients after
/// they are stored.
pub(crate) struct LossyCore {
    /// `http://127.0.0.1:<port>`.
    pub(crate) url: String,
    _shutdown: DropGuard,
}

#[derive(Clone)]
struct Forwarder {
    core: Channel,
    unconfirmed: Arc<AtomicUsize>,
}

impl LossyCore {
    /// In front of a core, with the number of creations that are not confirmed.
    pub(crate) async fn start(core_url: &str, unconfirmed: usize) -> Self {
        let core = Endpoint::from_shared(core_url.to_owned()).unwrap();
        let forwarder = Forwarder {
            core: core.connect_lazy(),
            unconfirmed: Arc::new(AtomicUsize::new(unconfirmed)),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let server = Server::builder()
            .add_service(TokensServer::new(forwarder.clone()))
            .add_service(ApiClientsServer::new(forwarder))
            .serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(shutdown.clone().run_until_cancelled_owned(server));
        Self {
            url,
            _shutdown: shutdown.drop_guard(),
        }
    }
}

#[async_trait]
impl Tokens for Forwarder {
    async fn issue_token(
        &self,
        request: Request<IssueTokenRequest>,
    ) -> Result<Response<proto::AccessToken>, Status> {
        TokensClient::new(self.core.clone())
            .issue_token(request)
            .await
    }

    async fn list_public_keys(
        &self,
        _: Request<ListPublicKeysRequest>,
    ) -> Result<Response<ListPublicKeysResponse>, Status> {
        Err(Status::unimplemented("not forwarded"))
    }
}

#[async_trait]
impl ApiClients for Forwarder {
    async fn create_api_client(
        &self,
        request: Request<CreateApiClientRequest>,
    ) -> Result<Response<ApiClient>, Status> {
        let created = ApiClientsClient::new(self.core.clone())
            .create_api_client(request)
            .await?;
        let is_lost = self
            .unconfirmed
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        if is_lost {
            return Err(Status::unavailable("try again"));
        }
        Ok(created)
    }

    async fn list_api_clients(
        &self,
        _: Request<ListApiClientsRequest>,
    ) -> Result<Response<ListApiClientsResponse>, Status> {
        Err(Status::unimplemented("not forwarded"))
    }

    async fn disable_api_client(
        &self,
        _: Request<DisableApiClientRequest>,
    ) -> Result<Response<ApiClient>, Status> {
        Err(Status::unimplemented("not forwarded"))
    }

    async fn rotate_api_client_secret(
        &self,
        _: Request<RotateApiClientSecretRequest>,
    ) -> Result<Response<ApiClient>, Status> {
        Err(Status::unimplemented("not forwarded"))
    }

    async fn get_current_api_client(
        &self,
        _: Request<GetCurrentApiClientRequest>,
    ) -> Result<Response<ApiClient>, Status> {
        Err(Status::unimplemented("not forwarded"))
    }
}
