//! A fake OSRM server: returns the same route for every request.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

pub(crate) struct RoutingServer {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<Infallible>,
}

struct State {
    status: u16,
    body: String,
    requests: Vec<String>,
}

impl RoutingServer {
    /// Starts a server that returns a route of this length (metres) and duration (seconds).
    pub(crate) async fn start(meters: f64, seconds: f64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            status: 200,
            body: route(meters, seconds),
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

    /// Sets the route returned from now on.
    pub(crate) fn set_route(&self, meters: f64, seconds: f64) {
        self.respond_with(200, &route(meters, seconds));
    }

    /// Sets the status and body returned from now on.
    pub(crate) fn respond_with(&self, status: u16, body: &str) {
        let mut state = self.state.lock().unwrap();
        state.status = status;
        body.clone_into(&mut state.body);
    }

    /// The paths and queries received.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }
}

impl Drop for RoutingServer {
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
        state.requests.push(target);
        format!(
            "HTTP/1.1 {} -\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{}",
            state.status,
            state.body.len(),
            state.body
        )
    };
    // The client may have disconnected.
    let _ = connection.write_all(response.as_bytes()).await;
}
