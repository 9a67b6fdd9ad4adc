//! Receives webhooks on port 9000. Needs the secret in `WEBHOOK_SECRET` and the crates base64, bytes,
//! hmac, http-body-util, hyper (features http1, server), hyper-util (tokio), sha2 and tokio (full).

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program of its own"
)]

use std::{
    collections::HashSet,
    convert::Infallible,
    env,
    sync::{LazyLock, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{HeaderMap, Request, Response, StatusCode, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use sha2::Sha256;
use tokio::net::TcpListener;

const TOLERANCE: u64 = 5 * 60; // seconds
const MAX_BODY: usize = 1 << 20;

static SECRET: LazyLock<String> = LazyLock::new(|| env::var("WEBHOOK_SECRET").unwrap_or_default());
/// Set to `X-Service-Signature` (`X-<Platform>-Signature`) to check that header instead.
static PLATFORM_HEADER: LazyLock<Option<String>> =
    LazyLock::new(|| env::var("PLATFORM_HEADER").ok());
/// Ids of processed notifications. Use a unique column of your database instead, written in the
/// transaction that processes the event: the set is lost when the program ends.
static PROCESSED: Mutex<Option<HashSet<String>>> = Mutex::new(None);

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Whether a signature is the Base64 of the HMAC; compares in constant time.
fn is_signed(key: &[u8], parts: &[&[u8]], signature: &str) -> bool {
    let (Ok(mut mac), Ok(signature)) = (
        Hmac::<Sha256>::new_from_slice(key),
        BASE64_STANDARD.decode(signature),
    ) else {
        return false;
    };
    for part in parts {
        mac.update(part);
    }
    mac.verify_slice(&signature).is_ok()
}

/// Keyed with the decoded secret. Covers the id and the time: an old request cannot be sent again.
fn has_standard_signature(headers: &HeaderMap, body: &[u8], now: u64) -> bool {
    let (id, sent_at) = (
        text(headers, "webhook-id"),
        text(headers, "webhook-timestamp"),
    );
    let is_recent = sent_at
        .parse()
        .is_ok_and(|sent_at: u64| now.abs_diff(sent_at) <= TOLERANCE);
    let Ok(key) = BASE64_STANDARD.decode(&*SECRET) else {
        return false;
    };
    let message = [id.as_bytes(), b".", sent_at.as_bytes(), b".", body];
    let mut signatures = text(headers, "webhook-signature").split(' ');
    is_recent
        && signatures.any(|one| {
            one.strip_prefix("v1,")
                .is_some_and(|signature| is_signed(&key, &message, signature))
        })
}

/// Keyed with the text of the secret. Covers the body alone.
fn has_platform_signature(headers: &HeaderMap, header: &str, body: &[u8]) -> bool {
    is_signed(SECRET.as_bytes(), &[body], text(headers, header))
}

async fn receive(request: Request<Incoming>) -> StatusCode {
    let (head, body) = request.into_parts();
    // The bytes as received: JSON that was parsed and written again has another signature.
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return StatusCode::BAD_REQUEST;
    };
    let body = body.to_bytes();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let is_genuine = match &*PLATFORM_HEADER {
        Some(header) => has_platform_signature(&head.headers, header, &body),
        None => has_standard_signature(&head.headers, &body, now),
    };
    if !is_genuine {
        return StatusCode::UNAUTHORIZED;
    }
    let mut processed = PROCESSED.lock().unwrap_or_else(PoisonError::into_inner);
    let processed = processed.get_or_insert_default();
    if !processed.contains(text(&head.headers, "webhook-id")) {
        println!("genuine: {}", String::from_utf8_lossy(&body)); // process the event here
        processed.insert(text(&head.headers, "webhook-id").to_owned());
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    if SECRET.is_empty() {
        let message = "set WEBHOOK_SECRET: with an empty key, a forged signature would be accepted";
        return Err(std::io::Error::other(message));
    }
    let port = env::var("PORT")
        .ok()
        .and_then(|port| port.parse().ok())
        .unwrap_or(9000);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = service_fn(async |request| {
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = receive(request).await;
            Ok::<_, Infallible>(response)
        });
        let connection = hyper::server::conn::http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}
