//! A small HTTP client.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) const JSON_LD: &str = "application/ld+json";

/// Longer than the gateway's own timeouts.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Client {
    addr: SocketAddr,
    http: legacy::Client<HttpConnector, Full<Bytes>>,
}

/// A whole response.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    pub(crate) fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            http: legacy::Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Uses HTTP/2 without an upgrade.
    pub(crate) fn http2(addr: SocketAddr) -> Self {
        Self {
            addr,
            http: legacy::Client::builder(TokioExecutor::new())
                .http2_only(true)
                .build_http(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path), "").await
    }

    pub(crate) async fn get_accepting(&self, path: &str, accept: &str) -> Reply {
        let request = self.request(Method::GET, path).header("accept", accept);
        self.send(request, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        let request = self.request(Method::POST, path);
        self.send(request.header("content-type", JSON_LD), body)
            .await
    }

    pub(crate) async fn post_form(&self, path: &str, body: &str, basic: Option<&str>) -> Reply {
        let mut request = self
            .request(Method::POST, path)
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(basic) = basic {
            request = request.header("authorization", basic);
        }
        self.send(request, body.to_owned()).await
    }

    pub(crate) async fn method(&self, method: Method, path: &str) -> Reply {
        self.send(self.request(method, path), "").await
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.addr))
    }

    /// Sends a request. If it is to `/api/` and has a body but no credentials, adds a token:
    /// otherwise the gateway would not read the body.
    pub(crate) async fn send(
        &self,
        request: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Reply {
        let body = body.into();
        let needs_token = !body.is_empty();
        let mut request = request.body(Full::new(body)).unwrap();
        if needs_token && request.uri().path().starts_with("/api/") {
            let token = HeaderValue::from_static("Bearer token");
            request.headers_mut().entry(AUTHORIZATION).or_insert(token);
        }
        let reply = async {
            let response = self.http.request(request).await.unwrap();
            let (parts, body) = response.into_parts();
            Reply {
                status: parts.status,
                headers: parts.headers,
                body: body.collect().await.unwrap().to_bytes(),
            }
        };
        let reply = tokio::time::timeout(TIMEOUT, reply).await;
        reply.expect("the gateway should respond")
    }

    /// Sends raw bytes and returns all bytes received until the connection closes.
    pub(crate) async fn send_raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut response = Vec::new();
        let closed = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut response)).await;
        closed.expect("the connection should be closed").unwrap();
        String::from_utf8(response).unwrap()
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        Some(self.headers.get(name)?.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    /// The body of an error without its request id, which must be that of the header.
    pub(crate) fn error(&self) -> Value {
        let mut error = self.json();
        let request_id = error.as_object_mut().unwrap().remove("requestId").unwrap();
        assert_eq!(request_id.as_str(), self.header("x-request-id"));
        error
    }
}
