//! Why an attempt failed, and the failure that is reported to core.

use std::{error::Error as _, time::Duration};

use http::StatusCode;
use hyper_util::client::legacy;
use proto::outcome::Failure;

use crate::{address_guard, connector, request::RequestError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("no response")]
    NoResponse(#[source] legacy::Error),
    #[error("receiver responded with {0}, not 2xx")]
    Status(StatusCode),
    #[error("no response within {0:?}")]
    Timeout(Duration),
}

impl SendError {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Request(RequestError::Url(_) | RequestError::Uri(_)) => Failure::AddressRefused,
            // A defect of core has no failure code: it is retried like any other failure.
            Self::Request(RequestError::Notification(_)) => Failure::Protocol,
            Self::NoResponse(error) => failure_without_response(error),
            Self::Status(_) => Failure::Status,
            Self::Timeout(_) => Failure::Timeout,
        }
    }
}

fn failure_without_response(error: &legacy::Error) -> Failure {
    use address_guard::Error as Guard;
    let connector = error.source().and_then(|source| source.downcast_ref());
    match connector {
        Some(connector::Error::Guard(Guard::Dns(_))) => Failure::Dns,
        Some(connector::Error::Guard(Guard::Denied(_))) => Failure::AddressRefused,
        // `TooManyAbandoned` occurs once the attempt that opened the connection has ended: none gets it.
        Some(connector::Error::Guard(Guard::Connect(_)) | connector::Error::TooManyAbandoned) => {
            Failure::Connect
        }
        Some(connector::Error::Tls(_)) => Failure::Tls,
        Some(connector::Error::Timeout(_)) => Failure::Timeout,
        // Also if the request waited for a pooled connection that was lost.
        None if error.is_connect() => Failure::Connect,
        // An HTTP/2 connection without an answer to a ping.
        None if is_timeout(error) => Failure::Timeout,
        None => Failure::Protocol,
    }
}

fn is_timeout(error: &legacy::Error) -> bool {
    let cause: Option<&hyper::Error> = error.source().and_then(|source| source.downcast_ref());
    cause.is_some_and(hyper::Error::is_timeout)
}

#[cfg(test)]
mod tests {
    use std::io;

    use bytes::Bytes;
    use http_body_util::Full;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::net::TcpStream;

    use super::*;

    /// The client's pool reports so that a connection was lost before its first request.
    #[tokio::test]
    async fn a_connect_error_that_is_not_our_connectors_is_a_connect_failure() {
        let connector = tower::service_fn(|_: http::Uri| {
            let error = io::Error::other("no connection");
            std::future::ready(Err::<TokioIo<TcpStream>, _>(error))
        });
        let client =
            legacy::Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(connector);

        let uri = http::Uri::from_static("http://shop.example/");
        let error = client.get(uri).await.unwrap_err();

        assert_eq!(SendError::NoResponse(error).failure(), Failure::Connect);
    }
}
