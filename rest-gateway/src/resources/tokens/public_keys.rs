//! `GET /oauth2/jwks`: the keys that verify access tokens.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, header::CACHE_CONTROL};
use proto::{ListPublicKeysRequest, tokens_client::TokensClient};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    core_pool::rpc,
    error::Error,
    request::{self, HandlerResult, Request},
};

/// Core is asked at most once in this time, however many unauthenticated clients ask the gateway.
const MAX_AGE: Duration = Duration::from_millis(500);

/// Allows caching for less than the minute between the publication and first use of a key.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=30");

/// The keys that core returned last, and when. One request at a time asks for them.
#[derive(Default)]
pub(crate) struct PublicKeys(Mutex<Option<(Instant, Bytes)>>);

pub(crate) async fn get(request: Request) -> HandlerResult {
    let keys = read(&request).await?;
    let mut response = request::response("application/jwk-set+json", keys);
    response.headers_mut().insert(CACHE_CONTROL, CACHE);
    Ok(response)
}

/// The keys, no older than [`MAX_AGE`]. A failure is not kept.
async fn read(request: &Request) -> Result<Bytes, Error> {
    let gateway = &request.gateway;
    let mut known = gateway.public_keys.0.lock().await;
    if let Some((since, keys)) = &*known
        && since.elapsed() < MAX_AGE
    {
        return Ok(keys.clone());
    }
    let list = rpc!(TokensClient.list_public_keys);
    let response = request.call_without_token(ListPublicKeysRequest {}, list);
    let keys = Bytes::from(response.await?.jwks);
    *known = Some((Instant::now(), keys.clone()));
    Ok(keys)
}
