//! The response headers `RateLimit-Policy` and `RateLimit`
//! (draft-ietf-httpapi-ratelimit-headers, version 09 and later).

use std::{fmt::Write as _, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use rate_limits::Status;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The statuses of all limits that count a request. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitStatuses(Arc<Mutex<Vec<Status>>>);

impl LimitStatuses {
    pub(super) fn add(&self, status: Status) {
        self.0.lock().push(status);
    }

    /// Adds the headers, if a limit counts the request.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let statuses = self.0.lock();
        if statuses.is_empty() {
            return;
        }
        let (mut policies, mut limits) = (String::new(), String::new());
        for status in statuses.iter() {
            let Status {
                policy,
                quota,
                window,
                remaining,
                reset,
                ..
            } = status;
            let comma = if policies.is_empty() { "" } else { ", " };
            // Writing to a `String` cannot fail.
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
