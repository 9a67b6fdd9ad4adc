//! A check and its result.

use std::time::Duration;

use process::logs::error_message;
use serde::Serialize;
use tokio::{runtime::Handle, task::spawn_blocking, time::timeout};

/// The limit of each check.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The fix if something is missing that the all-in-one creates at its first start.
pub const FIRST_START: &str =
    "start `delivery`, which creates it, or name the platform's directory with --data-dir";

/// A check and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: String,
    #[serde(flatten)]
    pub finding: Finding,
}

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub status: Status,
    pub found: String,
    /// What to do. `None` for an error ([`Finding::error`]): its message, `found`, contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// The platform serves, but less well than it could, or will soon fail.
    Warning,
    /// The platform does not start, or does not serve.
    Failure,
    /// There is nothing to check, or it cannot be checked.
    Skipped,
}

impl Check {
    /// Runs on a thread of its own, which a disk that does not respond blocks.
    pub async fn run<F: Into<Finding>>(
        name: impl Into<String>,
        finding: impl Future<Output = F> + Send + 'static,
    ) -> Self {
        let runtime = Handle::current();
        let checked = spawn_blocking(move || runtime.block_on(finding).into());
        let finding = match timeout(TIMEOUT, checked).await {
            Ok(checked) => checked.unwrap_or_else(Finding::error),
            Err(_) => Finding::failure(
                format!("there is no result within {TIMEOUT:?}"),
                "check whether the disk, the network and the services that are named in the settings respond",
            ),
        };
        Self {
            name: name.into(),
            finding,
        }
    }
}

impl Finding {
    pub fn ok(found: impl Into<String>) -> Self {
        Self::new(Status::Ok, found, None)
    }

    pub fn skipped(found: impl Into<String>) -> Self {
        Self::new(Status::Skipped, found, None)
    }

    pub fn warning(found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Status::Warning, found, Some(fix.into()))
    }

    pub fn failure(found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Status::Failure, found, Some(fix.into()))
    }

    /// An error whose message contains the fix.
    pub fn error(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Status::Failure, error_message(&error.into()), None)
    }

    fn new(status: Status, found: impl Into<String>, fix: Option<String>) -> Self {
        Self {
            status,
            found: found.into(),
            fix,
        }
    }
}

impl<E: Into<anyhow::Error>> From<Result<Finding, E>> for Finding {
    fn from(result: Result<Finding, E>) -> Self {
        result.unwrap_or_else(Finding::error)
    }
}
