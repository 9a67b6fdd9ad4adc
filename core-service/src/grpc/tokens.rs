//! Tokens: client credentials in, access token out (RFC 6749 §4.4).

use domain::api_client::SecretHash;
use tonic::{Request, Response, Status};

use super::Core;

use crate::error::{Error, Unauthenticated};

#[tonic::async_trait]
impl proto::tokens_server::Tokens for Core {
    async fn issue_token(
        &self,
        request: Request<proto::IssueTokenRequest>,
    ) -> Result<Response<proto::AccessToken>, Status> {
        let request = request.into_inner();
        let now = self.clock.now();

        let invalid = || Error::Unauthenticated(Unauthenticated::InvalidClient);
        let client = storage::api_clients::find_by_key(self.storage.reader(), &request.api_key)
            .await
            .map_err(Error::from)?;
        let Some(client) = client else {
            // An unknown key takes as long as a wrong secret.
            let _ = SecretHash([0; 32]).matches(&request.api_secret);
            return Err(invalid().into());
        };
        if !client.accepts(&request.api_secret, now) {
            return Err(invalid().into());
        }
        let scopes = client
            .grant(&request.scopes)
            .map_err(|error| Error::InvalidScope {
                message: error.to_string(),
            })?;

        let lifetime = self.config.token_lifetime;
        let token = self
            .keys_to_sign_with()
            .await?
            .sign(&client, scopes, now, lifetime)
            .map_err(|error| Error::Bug(error.to_string()))?;
        Ok(Response::new(proto::AccessToken {
            access_token: token.text,
            expires_in: lifetime,
            scopes: token
                .scopes
                .iter()
                .map(|scope| scope.as_str().to_owned())
                .collect(),
        }))
    }

    async fn list_public_keys(
        &self,
        _: Request<proto::ListPublicKeysRequest>,
    ) -> Result<Response<proto::ListPublicKeysResponse>, Status> {
        // Another core may have made a key since.
        self.reload_signing_keys().await?;
        let jwks = serde_json::to_string(&self.key_ring.ring().public(self.clock.now()))
            .map_err(|error| Error::Bug(error.to_string()))?;
        Ok(Response::new(proto::ListPublicKeysResponse { jwks }))
    }
}
