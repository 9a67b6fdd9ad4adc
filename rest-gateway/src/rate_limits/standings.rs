//! What clients are told of their budgets: `RateLimit-Policy` and `RateLimit`, as
//! draft-ietf-httpapi-ratelimit-headers has them since its version 09.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tower::{Layer, Service, layer::layer_fn};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// How a sender stands with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(super) policy: &'static str,
    pub(super) quota: u32,
    /// In seconds.
    pub(super) window: u64,
    pub(super) remaining: u32,
    /// In seconds: when there is something again, if nothing remains; else when all is.
    pub(super) reset: u64,
}

/// With every policy that a request is counted by. Clones are of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standings(Arc<Mutex<Vec<Standing>>>);

impl Standings {
    pub(super) fn add(&self, standing: Standing) {
        let mut standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        standings.push(standing);
    }

    fn write(&self, headers: &mut HeaderMap) {
        let standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if standings.is_empty() {
            return;
        }
        let (mut policies, mut limits) = (String::new(), String::new());
        for standing in standings.iter() {
            let Standing {
                policy,
                quota,
                window,
                remaining,
                reset,
            } = standing;
            let comma = if policies.is_empty() { "" } else { ", " };
            // Writing to a String cannot fail.
            let _ = write!(policies, "{comma}\"{policy}\";q={quota};w={window}");
            let _ = write!(limits, "{comma}\"{policy}\";r={remaining};t={reset}");
        }
        for (name, value) in [(POLICY, policies), (LIMIT, limits)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
    }
}

/// Writes how its sender stands into every answer, whatever it is.
pub(crate) fn layer<S>() -> impl Layer<S, Service = Show<S>> + Clone {
    layer_fn(|inner| Show { inner })
}

#[derive(Clone)]
pub(crate) struct Show<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Show<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let standings = Standings::default();
        request.extensions_mut().insert(standings.clone());
        let answer = self.inner.call(request);
        async move {
            let mut answer = answer.await?;
            standings.write(answer.headers_mut());
            Ok(answer)
        }
        .boxed()
    }
}
