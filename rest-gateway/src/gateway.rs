//! The state that all handlers share, and the result that each of them returns.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderValue, Response, header::CONTENT_TYPE};
use process::health::Readiness;
use tokio_util::sync::CancellationToken;

use crate::{
    config::DemoCourier, core_pool::CorePool, error::Error, platform::PlatformConfig,
    rate_limits::RateLimits,
};

/// State shared by all handlers.
pub(crate) struct Gateway {
    pub(crate) core: CorePool,
    /// Without a trailing slash.
    pub(crate) public_url: String,
    pub(crate) platform_name: String,
    pub(crate) platform: PlatformConfig,
    pub(crate) rate_limits: RateLimits,
    /// Only in the demo.
    pub(crate) demo_courier: Option<DemoCourier>,
    /// Cancelled when the gateway starts to drain.
    pub(crate) draining: CancellationToken,
    /// The document at `/api/docs.json`, made at its first request: that takes milliseconds and
    /// megabytes, which an idle gateway does not need.
    pub(crate) openapi: OnceLock<Bytes>,
}

impl Readiness for Gateway {
    async fn check(&self) -> Result<(), String> {
        if self.draining.is_cancelled() {
            Err("this gateway is shutting down".to_owned())
        } else if self.core.is_any_up() {
            Ok(())
        } else {
            Err("no core is ready: the cores' /readyz and logs say why".to_owned())
        }
    }
}

/// A handler's response or error.
pub(crate) type HandlerResult = Result<Response<Bytes>, Error>;

/// A 200 response with a body of this media type.
pub(crate) fn response(media_type: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
