//! Waiting for what no event announces.

use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until there is a result; panics with `what` if there is none in time.
pub(crate) async fn eventually<T>(
    timeout: Duration,
    what: &str,
    poll: impl AsyncFn() -> Option<T>,
) -> T {
    let found = async {
        loop {
            if let Some(found) = poll().await {
                return found;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let found = tokio::time::timeout(timeout, found).await;
    found.unwrap_or_else(|_| panic!("{what} within {timeout:?}"))
}
