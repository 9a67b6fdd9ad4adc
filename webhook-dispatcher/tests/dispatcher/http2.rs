//! Receivers that support HTTP/2. They write raw frames (RFC 9113 section 4.1), since libraries do
//! not produce invalid sequences.

use std::time::Duration;

use proto::{Outcome, outcome::Failure};
use tempfile::NamedTempFile;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::server::TlsStream;

use crate::{
    harness::{
        CoreStream, Dispatcher, FakeCore, attempt_with, config, delivered, failed, notification,
        with_timeout,
    },
    tls::{acceptor, certificate_for},
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200` of HPACK's static table.
const STATUS_200: &[u8] = &[0x88];

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// A connection from the receiver's side.
struct Connection(TlsStream<TcpStream>);

impl Connection {
    async fn open(mut stream: TlsStream<TcpStream>) -> Self {
        let mut preface = [0; PREFACE.len()];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(preface, PREFACE);
        let mut connection = Self(stream);
        connection.write(SETTINGS, 0, 0, &[]).await;
        connection
    }

    /// Writes a frame; false once the dispatcher has disconnected.
    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.is_ok() && self.0.flush().await.is_ok()
    }

    /// Reads the next frame and acknowledges it if required; `None` once the dispatcher has
    /// disconnected.
    async fn read(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let [high, mid, low, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, mid, low]) as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        if (kind == SETTINGS || kind == PING) && flags & ACK == 0 {
            let ack_payload = if kind == PING { &payload[..] } else { &[] };
            self.write(kind, ACK, 0, ack_payload).await;
        }
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// The stream of the next complete request; `None` once the dispatcher has disconnected.
    async fn read_request(&mut self) -> Option<u32> {
        loop {
            let frame = self.read().await?;
            if (frame.kind == HEADERS || frame.kind == DATA) && frame.flags & END_STREAM != 0 {
                return Some(frame.stream);
            }
        }
    }

    async fn respond(&mut self, stream: u32) {
        self.write(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_200)
            .await;
    }

    /// Sends GOAWAY with the last processed stream.
    async fn go_away(&mut self, last: u32) {
        let [no_error, last] = [0_u32, last].map(u32::to_be_bytes);
        let payload = [last, no_error].concat();
        self.write(GOAWAY, 0, 0, &payload).await;
    }

    /// Reads without a response until the dispatcher disconnects.
    async fn hang(mut self) {
        let _ = tokio::io::copy(&mut self.0, &mut tokio::io::sink()).await;
    }
}

/// A receiver's URL and certificate.
struct Receiver {
    url: String,
    certificate: NamedTempFile,
}

impl Receiver {
    /// Serves each connection with `serve`.
    async fn start<F, Fut>(serve: F) -> Self
    where
        F: Fn(usize, Connection) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (tls, certificate) = acceptor(&certificate_for("localhost"), &["h2"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let connection = Connection::open(tls.accept(stream).await.unwrap()).await;
                tokio::spawn(serve(number, connection));
            }
        });
        Self {
            url: format!("https://localhost:{port}/"),
            certificate,
        }
    }

    fn trust(&self, config: &mut webhook_dispatcher::Config) {
        config.webhook_ca_files = vec![self.certificate.path().to_owned()];
    }

    async fn attempt(&self) -> Outcome {
        attempt_with(|config| self.trust(config), &self.url).await
    }

    /// The failures of several attempts of one dispatcher, one after another; `Unspecified` if the
    /// attempt succeeded.
    async fn attempts<const N: usize>(&self, send_timeout: Duration) -> [Failure; N] {
        let mut core = FakeCore::start().await;
        let mut config = config(&[&core]);
        config.send_timeout = send_timeout;
        self.trust(&mut config);
        let dispatcher = Dispatcher::start(&config);
        let mut stream: CoreStream = core.stream().await;
        let mut failures = [Failure::Unspecified; N];
        for failure in &mut failures {
            stream.send(vec![notification(1, &self.url)]).await;
            let outcome = stream.next_outcome().await;
            stream.acknowledge(&outcome);
            *failure = outcome.failure();
        }
        dispatcher.shut_down_with(stream).await;
        failures
    }
}

#[tokio::test]
async fn endless_headers_are_a_protocol_failure() {
    // A literal field without indexing, its name and value not Huffman-coded.
    const FIELD: &[u8] = b"\x00\x06x-more\x08and more";
    let receiver = Receiver::start(|_, mut connection| async move {
        let stream = connection.read_request().await.unwrap();
        connection.write(HEADERS, 0, stream, STATUS_200).await;
        let fields = FIELD.repeat(512);
        while connection.write(CONTINUATION, 0, stream, &fields).await {}
    })
    .await;

    assert_eq!(receiver.attempt().await, failed(Failure::Protocol, None));
}

/// The receiver respects flow control, which limits how much it can send.
#[tokio::test]
async fn only_the_beginning_of_an_endless_body_is_read() {
    const CHUNK: usize = 16 * 1024;
    let (written_tx, mut written) = mpsc::unbounded_channel();
    let receiver = Receiver::start(move |_, mut connection| {
        let written = written_tx.clone();
        async move {
            let stream = connection.read_request().await.unwrap();
            connection
                .write(HEADERS, END_HEADERS, stream, STATUS_200)
                .await;
            // The initial windows (RFC 9113 section 6.9.2). Updates received before the end of the
            // request are ignored.
            let [mut connection_window, mut stream_window] = [65_535_usize; 2];
            let mut count = 0;
            loop {
                if connection_window.min(stream_window) >= CHUNK {
                    if !connection.write(DATA, 0, stream, &[b'a'; CHUNK]).await {
                        break;
                    }
                    (connection_window, stream_window) =
                        (connection_window - CHUNK, stream_window - CHUNK);
                    count += CHUNK;
                    continue;
                }
                let Some(frame) = connection.read().await else {
                    break;
                };
                if frame.kind == WINDOW_UPDATE {
                    let increment = u32::from_be_bytes(frame.payload.try_into().unwrap()) as usize;
                    match frame.stream {
                        0 => connection_window += increment,
                        _ => stream_window += increment,
                    }
                }
            }
            written.send(count).unwrap();
        }
    })
    .await;

    assert_eq!(receiver.attempt().await, delivered(&"a".repeat(4096)));
    let written = with_timeout(written.recv()).await.unwrap();
    assert!(written <= 3 * 64 * 1024, "{written}");
}

#[tokio::test]
async fn a_connection_closed_with_goaway_is_replaced() {
    let receiver = Receiver::start(|number, mut connection| async move {
        while let Some(stream) = connection.read_request().await {
            if number == 0 {
                connection.go_away(stream).await;
            }
            connection.respond(stream).await;
        }
    })
    .await;

    let failures = receiver.attempts(Duration::from_secs(15)).await;

    assert_eq!(failures, [Failure::Unspecified; 2]);
}

#[tokio::test]
async fn a_request_that_goaway_declares_unprocessed_costs_no_attempt() {
    let receiver = Receiver::start(|number, mut connection| async move {
        let mut last = 0;
        while let Some(stream) = connection.read_request().await {
            if number == 0 && last > 0 {
                connection.go_away(last).await;
                break;
            }
            connection.respond(stream).await;
            last = stream;
        }
    })
    .await;

    let failures = receiver.attempts(Duration::from_secs(15)).await;

    assert_eq!(failures, [Failure::Unspecified; 2]);
}

/// It sends GOAWAY without processing any request, on each connection.
#[tokio::test]
async fn a_receiver_that_only_sends_goaway_is_a_protocol_failure() {
    let receiver = Receiver::start(|_, mut connection| async move {
        connection.read_request().await;
        connection.go_away(0).await;
    })
    .await;

    assert_eq!(receiver.attempt().await, failed(Failure::Protocol, None));
}

/// The connection is alive, since it answers pings; only one request hangs.
#[tokio::test]
async fn one_request_that_hangs_times_out_and_the_next_succeeds() {
    let receiver = Receiver::start(|number, mut connection| async move {
        if number == 0 {
            connection.read_request().await;
        }
        while let Some(stream) = connection.read_request().await {
            connection.respond(stream).await;
        }
    })
    .await;

    let failures = receiver.attempts(Duration::from_secs(3)).await;

    assert_eq!(failures, [Failure::Timeout, Failure::Unspecified]);
}

/// Like when the receiver's machine crashes: without pings all requests would fail on the dead
/// connection until TCP closes it.
#[tokio::test]
async fn a_dead_connection_is_replaced() {
    let receiver = Receiver::start(|number, mut connection| async move {
        let Some(stream) = connection.read_request().await else {
            return;
        };
        connection.respond(stream).await;
        if number == 0 {
            connection.hang().await;
        } else {
            while let Some(stream) = connection.read_request().await {
                connection.respond(stream).await;
            }
        }
    })
    .await;

    let failures = receiver.attempts(Duration::from_secs(12)).await;

    assert_eq!(failures, [Failure::Unspecified; 2]);
}

/// Without a response on any connection, the attempt times out regardless of the protocol.
#[tokio::test]
async fn a_receiver_that_never_responds_times_out() {
    let receiver = Receiver::start(|_, connection| connection.hang()).await;

    let [failure] = receiver.attempts(Duration::from_secs(1)).await;

    assert_eq!(failure, Failure::Timeout);
}
