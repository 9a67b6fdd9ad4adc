//! REST client of a shop: OAuth 2 client credentials and JSON-LD.

use std::{convert::Infallible, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use delivery::Credentials;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use oauth2::{
    ClientId, ClientSecret, HttpRequest, HttpResponse, Scope, TokenResponse as _, TokenUrl,
    basic::BasicClient,
};
use serde_json::Value;

use super::{Documentation, Response, eventually, translations};

/// Far longer than any request, and any work in the background, takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Calls the REST API, with a bearer token if it has one.
#[derive(Clone)]
pub(crate) struct ApiClient {
    base_url: String,
    token: Option<String>,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl ApiClient {
    /// A client without a token.
    pub(crate) fn new(base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            token: None,
            http: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// A client with a token for these scopes, which the library `oauth2` requests.
    pub(crate) async fn authorized(
        base_url: &str,
        credentials: &Credentials,
        scopes: &[&str],
    ) -> Self {
        let client = Self::new(base_url);
        let sender = &client;
        let http = |request: HttpRequest| async move {
            let sent = sender.exchange(request.map(Full::from)).await;
            let mut response = HttpResponse::new(sent.body.to_vec());
            *response.status_mut() = sent.status.try_into().unwrap();
            *response.headers_mut() = sent.headers;
            Ok::<_, Infallible>(response)
        };
        let token = BasicClient::new(ClientId::new(credentials.api_key.clone()))
            .set_client_secret(ClientSecret::new(credentials.api_secret.clone()))
            .set_token_uri(TokenUrl::new(client.url("/oauth2/token")).unwrap())
            .exchange_client_credentials()
            .add_scopes(scopes.iter().map(|scope| Scope::new((*scope).to_owned())))
            .request_async(&http)
            .await
            .unwrap();
        client.with_token(token.access_token().secret())
    }

    /// The same client with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    /// The bearer token.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap()
    }

    /// The path is relative to the base URL: `/api/tasks/<id>`, or an IRI.
    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(self.request(Method::GET, path), "").await
    }

    /// Repeats a `GET` until `find` returns a value, and returns it.
    pub(crate) async fn wait_until<T>(&self, path: &str, find: impl Fn(Value) -> Option<T>) -> T {
        let what = format!("{path} does not reach the expected state");
        eventually(TIMEOUT, &what, async || {
            find(self.get(path).await.expect(200))
        })
        .await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.send(self.request(Method::POST, path), body.to_string())
            .await
    }

    /// Posts with an idempotency key.
    pub(crate) async fn post_with_key(&self, path: &str, key: &str, body: &Value) -> Response {
        let request = self.request(Method::POST, path);
        self.send(request.header("idempotency-key", key), body.to_string())
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Response {
        self.send(self.request(Method::PUT, path), body.to_string())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.send(self.request(Method::DELETE, path), "").await
    }

    /// Creates a delivery and returns it.
    pub(crate) async fn create_delivery(&self, body: Value) -> Value {
        self.post("/api/deliveries", body).await.expect(201)
    }

    /// The amount of a draft's price.
    pub(crate) async fn calculate(&self, draft: &Value) -> i64 {
        let price = self.post("/api/retail_prices/calculate", draft.clone());
        price.await.expect(200)["amount"].as_i64().unwrap()
    }

    /// Registers a webhook and returns it, with its secret.
    pub(crate) async fn create_webhook(&self, event: &str, url: &str) -> Value {
        let body = serde_json::json!({ "event": event, "url": url });
        self.post("/api/webhooks", body).await.expect(201)
    }

    /// Calls the token endpoint with HTTP Basic credentials and a form.
    pub(crate) async fn request_token(
        &self,
        credentials: &Credentials,
        form: &[(&str, &str)],
    ) -> Response {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        let basic = format!("{}:{}", credentials.api_key, credentials.api_secret);
        let basic = STANDARD.encode(basic);
        let request = Request::post(self.url("/oauth2/token"))
            .header(AUTHORIZATION, format!("Basic {basic}"))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request, body.finish()).await
    }

    /// A request with this client's usual headers, to be changed and sent with
    /// [`ApiClient::send`].
    pub(crate) fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(self.url(path))
            .header(ACCEPT, "application/ld+json")
            .header(CONTENT_TYPE, "application/ld+json");
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    /// Sends a request exactly as it was built, with any bytes as its body. Fails if the response
    /// is not documented by the platform.
    pub(crate) async fn send(
        &self,
        request: hyper::http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Response {
        let request = request.body(Full::new(body.into())).unwrap();
        self.exchange(request).await
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = async {
            let (parts, body) = self.http.request(request).await.unwrap().into_parts();
            (parts, body.collect().await.unwrap().to_bytes())
        };
        let (parts, body) = tokio::time::timeout(TIMEOUT, response)
            .await
            .unwrap_or_else(|_| panic!("no response to {method} {path}"));
        let response = Response {
            status: parts.status.as_u16(),
            headers: parts.headers,
            json: serde_json::from_slice(&body).unwrap_or(Value::Null),
            body,
        };
        let documentation = Documentation::of(&self.base_url).await;
        documentation.check(&method, &path, &response);
        translations::check(&response);
        response
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }
}
