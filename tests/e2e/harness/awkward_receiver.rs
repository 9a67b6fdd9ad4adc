//! Receivers of webhooks that do not behave: one sends its callers elsewhere, one hangs up.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::{Request, Response, body::Incoming, header::LOCATION, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
};

/// Far beyond what a notification takes.
const DEADLINE: Duration = Duration::from_secs(30);

/// A receiver on loopback that remembers the `webhook-id` of what came.
pub(crate) struct AwkwardReceiver {
    url: String,
    arrived: Mutex<mpsc::UnboundedReceiver<String>>,
}

impl AwkwardReceiver {
    /// Answers with a redirection to another address.
    pub(crate) async fn redirecting(status: u16, location: &str) -> Self {
        Self::start(Some((status, location.to_owned()))).await
    }

    /// Closes the connection once the request's head has come, without an answer.
    pub(crate) async fn hanging_up() -> Self {
        Self::start(None).await
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The `webhook-id` of the next request. Fails after a deadline.
    pub(crate) async fn next_id(&self) -> String {
        let mut arrived = self.arrived.lock().await;
        tokio::time::timeout(DEADLINE, arrived.recv())
            .await
            .expect("no notification came")
            .expect("the receiver runs as long as the test")
    }

    async fn start(redirection: Option<(u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, arrived) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service_fn(|request: Request<Incoming>| {
                    let id = request.headers().get("webhook-id").cloned();
                    let answer = redirection.as_ref().map(|(status, location)| {
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
                        answer.ok_or_else(hang_up)
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

/// What makes the server close the connection.
fn hang_up() -> std::io::Error {
    std::io::ErrorKind::ConnectionAborted.into()
}
