//! Sends the requests, and checks the headers of the responses.

use std::collections::BTreeMap;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Request,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

use super::{
    OPERATIONS, OTHERS, TIMEOUT, UNKEPT, columns,
    resources::{Resources, with_parameter},
};
use crate::harness::{Mismatches, Platform, UNKNOWN_ID, image::FORM};

/// The token of the shop's client, of a program that completes tasks, and of one that dispatches.
const SHOP: &str = "authorization: Bearer <shop>";
const BOARD: &str = "authorization: Bearer <board>";
const DESK: &str = "authorization: Bearer <desk>";

/// The header with the token that an operation requires; empty if it requires none.
fn token(operation: &Value) -> &'static str {
    match operation["security"][0].get("accessToken") {
        None => "",
        Some(scopes) if scopes[0] == "tasks:all" => BOARD,
        Some(scopes) if scopes[0] == "dispatch" => DESK,
        Some(_) => SHOP,
    }
}

/// Sends requests over one version of HTTP, and checks the responses.
pub(super) struct Checks<'m> {
    version: &'static str,
    base_url: String,
    http: Client<HttpConnector, Full<Bytes>>,
    /// What placeholders in requests stand for.
    texts: Vec<(&'static str, String)>,
    mismatches: &'m mut Mismatches,
}

impl<'m> Checks<'m> {
    pub(super) fn new(
        version: &'static str,
        platform: &Platform,
        texts: Vec<(&'static str, String)>,
        mismatches: &'m mut Mismatches,
    ) -> Self {
        Self {
            version,
            base_url: platform.base_url.clone(),
            http: Client::builder(TokioExecutor::new())
                .http2_only(version == "HTTP/2")
                .build_http(),
            texts,
            mismatches,
        }
    }

    /// Of each operation the success, and of a `GET` those to `HEAD` and to a client that has the resource.
    pub(super) async fn check_successes(
        &mut self,
        documented: &BTreeMap<String, &Value>,
        resources: &Resources,
    ) {
        for row in OPERATIONS.trim().lines() {
            let [operation, body, status, cache_control] = columns(row);
            let status = status.parse().unwrap();
            let Some(token) = documented.get(operation).copied().map(token) else {
                continue;
            };
            let request = resources.request(operation);
            self.check(&request, &[token], body, status, cache_control)
                .await;
            let Some(path) = request.strip_prefix("GET ") else {
                continue;
            };
            let head = format!("HEAD {path}");
            self.check(&head, &[token], "", status, cache_control).await;
            if cache_control != "no-store" {
                let headers = [token, "if-none-match: *"];
                self.check(&request, &headers, "", 304, cache_control).await;
            }
        }
    }

    /// What every operation responds alike: without its token, for an unknown resource, and for `OPTIONS` and
    /// an unknown method on its path.
    pub(super) async fn check_common_responses(&mut self, documented: &BTreeMap<String, &Value>) {
        for (operation, description) in documented {
            let (method, template) = operation.split_once(' ').unwrap();
            let path = with_parameter(template, |_| UNKNOWN_ID.to_owned());
            let (request, token) = (format!("{method} {path}"), token(description));
            if !token.is_empty() {
                let has_body = !["GET", "DELETE"].contains(&method);
                let body = if has_body { "{}" } else { "" };
                self.check(&request, &[], body, 401, UNKEPT).await;
            }
            if method == "GET" && path != template {
                self.check(&request, &[token], "", 404, UNKEPT).await;
            }
            let unsupported = format!("BREW {path}");
            self.check(&unsupported, &[], "", 405, UNKEPT).await;
            let options = format!("OPTIONS {path}");
            self.check(&options, &[], "", 204, UNKEPT).await;
            let preflight = [
                "origin: https://shop.example",
                "access-control-request-method: POST",
            ];
            self.check(&options, &preflight, "", 204, UNKEPT).await;
        }
    }

    pub(super) async fn check_others(&mut self) {
        for row in OTHERS.trim().lines() {
            let [request, header, body, status, cache_control] = columns(row);
            let is_for_token = request.ends_with("/oauth2/token");
            let token = if is_for_token { "" } else { SHOP };
            let status = status.parse().unwrap();
            self.check(request, &[token, header], body, status, cache_control)
                .await;
        }
    }

    /// Sends a request, `<method> <path>`, and checks the response.
    pub(super) async fn check(
        &mut self,
        request: &str,
        headers: &[&str],
        body: &str,
        status: u16,
        cache_control: &str,
    ) {
        let (found_status, found) = self.send(request, headers, body).await;

        let values = |name: &str| {
            let values = found.get_all(name).iter();
            let texts = values.map(|value: &HeaderValue| value.to_str().unwrap());
            texts.collect::<Vec<_>>().join(" and ")
        };
        let headers = headers.join(" ");
        self.mismatches.check_eq(
            format!("{} {request} {headers}", self.version),
            (
                found_status,
                &*values("x-content-type-options"),
                &*values("cache-control"),
            ),
            (status, "nosniff", cache_control),
        );
    }

    /// The status and the headers of the response. Empty headers are left out.
    pub(super) async fn send(
        &self,
        request: &str,
        headers: &[&str],
        body: &str,
    ) -> (u16, HeaderMap) {
        let (method, path) = request.split_once(' ').unwrap();
        let media_type = match path {
            "/oauth2/token" => "application/x-www-form-urlencoded",
            path if path.ends_with("_images") => FORM,
            _ => "application/ld+json",
        };
        let attach_to = match path {
            "/api/incident_images" => "<reported>",
            _ => "<task>",
        };
        let mut message = Request::builder()
            .method(method)
            .uri(format!("{}{}", self.base_url, self.expanded(path)))
            .header(CONTENT_TYPE, media_type)
            .header("x-attach-to", self.expanded(attach_to))
            .body(Full::new(Bytes::from(self.expanded(body))))
            .unwrap();
        for header in headers.iter().filter(|header| !header.is_empty()) {
            let (name, value) = header.split_once(": ").unwrap();
            let name: HeaderName = name.parse().unwrap();
            let value = self.expanded(value).parse().unwrap();
            message.headers_mut().insert(name, value);
        }
        let response = async {
            let response = self.http.request(message).await.unwrap();
            let (parts, body) = response.into_parts();
            body.collect().await.unwrap();
            (parts.status.as_u16(), parts.headers)
        };
        tokio::time::timeout(TIMEOUT, response)
            .await
            .unwrap_or_else(|_| panic!("no response to {request}"))
    }

    fn expanded(&self, text: &str) -> String {
        let texts = self.texts.iter();
        texts.fold(text.to_owned(), |text, (placeholder, meaning)| {
            text.replace(*placeholder, meaning)
        })
    }
}
