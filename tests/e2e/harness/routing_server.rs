//! A server that speaks OSRM's protocol, and knows one way whatever it is asked.

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
    answer: String,
    questions: Vec<String>,
}

impl RoutingServer {
    /// Knows a way of so many metres and seconds.
    pub(crate) async fn start(meters: f64, seconds: f64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            status: 200,
            answer: way(meters, seconds),
            questions: Vec::new(),
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

    /// Knows another way from now on.
    pub(crate) fn knows(&self, meters: f64, seconds: f64) {
        self.answer(200, &way(meters, seconds));
    }

    /// Answers something else from now on.
    pub(crate) fn answer(&self, status: u16, answer: &str) {
        let mut state = self.state.lock().unwrap();
        state.status = status;
        answer.clone_into(&mut state.answer);
    }

    /// The paths and queries it was asked for.
    pub(crate) fn questions(&self) -> Vec<String> {
        self.state.lock().unwrap().questions.clone()
    }
}

impl Drop for RoutingServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn way(meters: f64, seconds: f64) -> String {
    let answer = serde_json::json!({
        "code": "Ok",
        "routes": [{ "distance": meters, "duration": seconds, "legs": [] }],
        "waypoints": [],
    });
    answer.to_string()
}

/// Answers one question and closes.
async fn serve(mut connection: TcpStream, state: Arc<Mutex<State>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = connection.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let answer = {
        let mut state = state.lock().unwrap();
        let question = head.split(' ').nth(1).unwrap().to_owned();
        state.questions.push(question);
        format!(
            "HTTP/1.1 {} -\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{}",
            state.status,
            state.answer.len(),
            state.answer
        )
    };
    // Who asked may have gone.
    let _ = connection.write_all(answer.as_bytes()).await;
}
