//! gRPC connections to a core.

use std::time::Duration;

use delivery::Credentials;
use proto::{IssueTokenRequest, tokens_client::TokensClient};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

/// Far longer than core takes to respond, or to begin a stream.
const TIMEOUT: Duration = Duration::from_mins(1);

/// What a command says about a server that does not speak gRPC, or not with its scheme.
pub(crate) const NOT_A_CORE: &str =
    "does not respond as a core: if it is one and runs, check the scheme and the port of its URL";

/// A channel to a core, and a token of an API client for these scopes.
pub(crate) async fn connect(
    core_url: &str,
    credentials: &Credentials,
    scopes: &[&str],
) -> (Channel, String) {
    let channel = Endpoint::from_shared(core_url.to_owned())
        .unwrap()
        .timeout(TIMEOUT)
        .connect()
        .await
        .unwrap();
    let token = TokensClient::new(channel.clone())
        .issue_token(IssueTokenRequest {
            api_key: credentials.api_key.clone(),
            api_secret: credentials.api_secret.clone(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        })
        .await
        .unwrap()
        .into_inner();
    (channel, token.access_token)
}

/// A request with a bearer token.
pub(crate) fn with_token<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}
