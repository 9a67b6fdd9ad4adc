//! Misbehaving webhook receivers: one redirects, one closes the connection.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::{Request, Response, body::Incoming, header::LOCATION, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
};

/// Far longer than a notification takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A receiver on loopback that records the `webhook-id` of each request.
pub(crate) struct MisbehavingReceiver {
    url: String,
    arrived: Mutex<mpsc::UnboundedReceiver<String>>,
}

impl MisbehavingReceiver {
    /// Responds with a redirect to another URL.
    pub(crate) async fn redirecting(status: u16, location: &str) -> Self {
        Self::start(Some((status, location.to_owned()))).await
    }

    /// Closes the connection after the request's head, without a response.
    pub(crate) async fn closing_connection() -> Self {
        Self::start(None).await
    }

    /// The receiver's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The `webhook-id` of the next request. Fails after 30 s.
    pub(crate) async fn next_id(&self) -> String {
        let mut arrived = self.arrived.lock().await;
        tokio::time::timeout(TIMEOUT, arrived.recv())
            .await
            .expect("a notification should arrive within 30 s")
            .expect("the receiver runs until the test ends")
    }

    async fn start(redirect: Option<(u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, arrived) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service_fn(|request: Request<Incoming>| {
                    let id = request.headers().get("webhook-id").cloned();
                    let response = redirect.as_ref().map(|(status, location)| {
                        Response::builder()
                            .status(*status)
                            .header(LOCATION, location)
                            .body(Empty::<Bytes>::new())
                            .unwrap()
                    });
                    let sender = sender.clone();
                    async move {
                        let id = id.unwrap().to_str().unwrap().to_owned();
                        let _ = sender.send(id);
                        response.ok_or_else(connection_aborted)
                    }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }
        });
        Self {
            url,
            arrived: Mutex::new(arrived),
        }
    }
}

/// An error that makes the server close the connection.
fn connection_aborted() -> std::io::Error {
    std::io::ErrorKind::ConnectionAborted.into()
}
