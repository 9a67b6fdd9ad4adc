//! The failures of a token request, in the form of RFC 6749 §5.2.

use http::StatusCode;
use serde::Serialize;

use crate::error::{Details, Error};

/// The body of an error response.
#[derive(Debug, Serialize)]
pub(super) struct ErrorResponse<'a> {
    pub(super) error: Reason,
    pub(super) error_description: &'a str,
    /// The description again, for older clients.
    pub(super) message: &'a str,
}

/// Why a token request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    InvalidRequest,
    InvalidClient,
    InvalidScope,
    UnsupportedGrantType,
}

/// The failure of a token request.
pub(super) enum TokenError {
    Rejected(Reason, String),
    /// An error that RFC 6749 does not define.
    Other(Error),
}

impl TokenError {
    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::Rejected(Reason::InvalidRequest, message.into())
    }

    pub(super) fn invalid_client(message: impl Into<String>) -> Self {
        Self::Rejected(Reason::InvalidClient, message.into())
    }
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        match error.details {
            Details::Violations(violations) => {
                let messages: Vec<_> = violations
                    .into_iter()
                    .map(|violation| violation.message)
                    .collect();
                let reason = match &*error.code {
                    "invalid_scope" => Reason::InvalidScope,
                    _ => Reason::InvalidRequest,
                };
                Self::Rejected(reason, messages.join("; "))
            }
            _ if error.kind.status == StatusCode::UNAUTHORIZED => {
                Self::invalid_client(error.message)
            }
            _ => Self::Other(error),
        }
    }
}
