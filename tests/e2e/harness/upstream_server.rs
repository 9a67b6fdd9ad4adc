//! A fake router or geocoder, called over HTTP.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

pub(crate) struct UpstreamServer {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<Infallible>,
}

/// The status and the body of the response to a path and query.
type Respond = dyn Fn(&str) -> (u16, String) + Send;

struct State {
    respond: Box<Respond>,
    requests: Vec<String>,
}

impl UpstreamServer {
    /// Starts a server that responds with a status and a body to a path and query.
    pub(crate) async fn start(respond: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            respond: Box::new(respond),
            requests: Vec::new(),
        }));
        let served = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(connection, Arc::clone(&served)));
            }
        });
        Self {
            url,
            state,
            accepting,
        }
    }

    /// Starts an OSRM server that returns a route of this length (metres) and duration (seconds).
    pub(crate) async fn start_router(meters: f64, seconds: f64) -> Self {
        let body = route(meters, seconds);
        Self::start(move |_| (200, body.clone())).await
    }

    /// Sets the route returned from now on.
    pub(crate) fn set_route(&self, meters: f64, seconds: f64) {
        self.respond_with(200, &route(meters, seconds));
    }

    /// Sets the status and body returned from now on.
    pub(crate) fn respond_with(&self, status: u16, body: &str) {
        let body = body.to_owned();
        self.state.lock().unwrap().respond = Box::new(move |_| (status, body.clone()));
    }

    /// The paths and queries received.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }
}

impl Drop for UpstreamServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn route(meters: f64, seconds: f64) -> String {
    let body = serde_json::json!({
        "code": "Ok",
        "routes": [{ "distance": meters, "duration": seconds, "legs": [] }],
        "waypoints": [],
    });
    body.to_string()
}

/// Responds to one request and closes the connection.
async fn serve(mut connection: TcpStream, state: Arc<Mutex<State>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = connection.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let response = {
        let mut state = state.lock().unwrap();
        let target = head.split(' ').nth(1).unwrap().to_owned();
        let (status, body) = (state.respond)(&target);
        state.requests.push(target);
        let length = body.len();
        format!(
            "HTTP/1.1 {status} -\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    };
    // The client may have disconnected.
    let _ = connection.write_all(response.as_bytes()).await;
}
