//! gRPC calls with any headers and any bytes, all over one HTTP/2 connection that is never replaced.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    Request,
    body::Frame,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::Status;

/// Far longer than a call takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// What a caller sends after the headers.
pub(crate) type Sent = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// These bytes, after which the caller half-closes.
pub(crate) fn complete(bytes: impl Into<Bytes>) -> Sent {
    StreamBody::new(stream::iter([Ok(Frame::data(bytes.into()))]).boxed())
}

/// These bytes, after which the caller keeps the call open.
pub(crate) fn unfinished(bytes: impl Into<Bytes>) -> Sent {
    let first = stream::iter([Ok(Frame::data(bytes.into()))]);
    StreamBody::new(first.chain(stream::pending()).boxed())
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) http_status: u16,
    /// From the headers or the trailers; none if HTTP/2 has answered.
    pub(crate) status: Option<Status>,
}

/// A connection to a core.
pub(crate) struct RawConnection {
    core_url: String,
    requests: SendRequest<Sent>,
}

impl RawConnection {
    pub(crate) async fn open(core_url: &str) -> Self {
        let addr = core_url.strip_prefix("http://").unwrap();
        let io = TokioIo::new(TcpStream::connect(addr).await.unwrap());
        let (requests, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        Self {
            core_url: core_url.to_owned(),
            requests,
        }
    }

    /// Calls an rpc (`/package.Service/Method`) with a bearer token and more headers, and waits until the
    /// call ends. Fails if the connection does.
    pub(crate) async fn call(
        &self,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        sent: Sent,
    ) -> Ended {
        let mut request = Request::post(format!("{}{path}", self.core_url))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("authorization", format!("Bearer {token}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(sent).unwrap();
        let mut requests = self.requests.clone();
        let exchange = async {
            let response = requests.send_request(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let body = body.collect().await.unwrap();
            let trailers = || body.trailers().and_then(Status::from_header_map);
            Ended {
                http_status: parts.status.as_u16(),
                status: Status::from_header_map(&parts.headers).or_else(trailers),
            }
        };
        let ended = tokio::time::timeout(TIMEOUT, exchange).await;
        ended.expect("the call should end")
    }
}
