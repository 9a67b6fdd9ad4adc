//! Tokens: issues an access token for client credentials (RFC 6749 §4.4).

use domain::api_secrets::SecretHash;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::AUDIT,
    error::{Error, Unauthenticated},
};

/// The characters of an API key that are logged: all of a valid one.
const MAX_LOGGED_KEY: usize = 40;

#[tonic::async_trait]
impl proto::tokens_server::Tokens for Services {
    async fn issue_token(
        &self,
        request: Request<proto::IssueTokenRequest>,
    ) -> Reply<proto::AccessToken> {
        let request = request.into_inner();
        let now = self.clock.now();
        self.rate_limits
            .check_credentials(&request.api_key, &request.api_secret)?;

        let refused = |reason: &str| {
            let api_key: String = request.api_key.chars().take(MAX_LOGGED_KEY).collect();
            tracing::info!(target: AUDIT, rpc = "IssueToken", ?api_key, "refused: {reason}");
        };
        let invalid = || {
            refused("wrong key or secret");
            Error::Unauthenticated(Unauthenticated::InvalidClient)
        };
        let client = storage::api_clients::find_by_key(&self.storage, &request.api_key)
            .await
            .map_err(Error::from)?;
        let Some(client) = client else {
            // Take as long for an unknown key as for a wrong secret.
            let _ = SecretHash([0; 32]).matches(&request.api_secret);
            return Err(invalid().into());
        };
        let secret = client
            .accept(&request.api_secret, now)
            .ok_or_else(invalid)?;
        let enabled = self.authenticator.check_store(&client).await;
        enabled.inspect_err(|error| {
            if matches!(error, Error::StoreDisabled) {
                refused("store disabled");
            }
        })?;
        let scopes = client.grant(&request.scopes).map_err(|error| {
            refused("scope not permitted");
            Error::InvalidScope(error)
        })?;

        let lifetime = self.config.token_lifetime_seconds();
        let token = self
            .key_ring
            .fresh_keys()
            .await?
            .sign(&client, secret, &scopes, now, lifetime)
            .map_err(Error::Bug)?;
        Ok(Response::new(token))
    }

    async fn list_public_keys(
        &self,
        _: Request<proto::ListPublicKeysRequest>,
    ) -> Reply<proto::ListPublicKeysResponse> {
        // Another core may have created a key.
        self.key_ring.reload_if_due().await?;
        let jwks = serde_json::to_string(&self.key_ring.keys().public(self.clock.now()))
            .map_err(|error| Error::Bug(error.to_string()))?;
        Ok(Response::new(proto::ListPublicKeysResponse { jwks }))
    }
}
