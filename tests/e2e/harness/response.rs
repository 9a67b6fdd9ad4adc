//! A response of the REST API, as tests read it.

use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::Value;

/// A response of the REST API.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The body read as JSON; null if it is not JSON.
    pub(crate) json: Value,
}

impl Response {
    /// The text of a header; empty if it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The JSON of a response with this status. Fails with the body if the status differs.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(
            self.status,
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self.json
    }

    /// The `propertyPath` of every violation, in order.
    pub(crate) fn violation_paths(&self) -> Vec<&str> {
        self.json["violations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|violation| violation["propertyPath"].as_str())
            .collect()
    }
}
