use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use process::metrics::Counters;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::watch,
};

use super::*;

const BODY: usize = 4 << 20;
const STREAMS: usize = 10;
const UNREAD: Duration = Duration::from_millis(200);
/// Far longer than a response takes.
const LONG: Duration = Duration::from_secs(30);

/// A server of large responses: its address, and the bytes that are unsent.
fn server() -> (SocketAddr, Arc<Pool<IpAddr>>, DropGuard) {
    let large = async |_: Request<Incoming>, _| Response::new(Full::from(vec![7; BODY]));
    server_of(1 << 30, large)
}

/// A server with this memory, of which a request takes one byte.
fn server_of<S, R>(memory: usize, service: S) -> (SocketAddr, Arc<Pool<IpAddr>>, DropGuard)
where
    S: Fn(Request<Incoming>, RequestMemory) -> R + Send + Sync + 'static,
    R: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let pool = |limit| Pool::new(limit, limit, Counters::new("reason", &[]), "");
    let listener = process::listen::listen(([127, 0, 0, 1], 0).into(), "").unwrap();
    let addr = listener.local_addr().unwrap();
    let (memory, stop) = (pool(memory), CancellationToken::new());
    let server = Arc::new(Server {
        http: Http {
            http1: Some(Http1 {
                max_headers: 100,
                max_head: 64 * 1024,
            }),
            max_header_list: 16 * 1024,
            max_streams: 100,
            ping_interval: LONG,
            request: 1,
        },
        timeouts: Timeouts {
            head: LONG,
            idle: Some(LONG),
            unread: UNREAD,
        },
        memory: Arc::clone(&memory),
        client: |_: &Request<Incoming>, peer| peer,
        service,
        closing: CancellationToken::new(),
        ended: stop.clone(),
        tasks: TaskTracker::new(),
    });
    let until = stop.clone().cancelled_owned();
    tokio::spawn(async move { server.accept(listener, None, pool(100), until).await });
    (addr, memory, stop.drop_guard())
}

async fn all_is_given_back(memory: &Pool<IpAddr>) {
    let given_back = async {
        while memory.total() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let given_back = timeout(LONG, given_back).await;
    assert!(given_back.is_ok(), "{} bytes are unsent", memory.total());
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn an_unread_response_over_http_1_ends_with_its_connection() {
    let (addr, memory, _stop) = server();
    let mut client = TcpStream::connect(addr).await.unwrap();
    client.write_all(REQUEST).await.unwrap();

    // Once its head has arrived, the response has been counted.
    let head = client.read_u8().await.unwrap();
    all_is_given_back(&memory).await;

    let mut received = vec![head];
    let _ = client.read_to_end(&mut received).await;
    assert!(received.len() < BODY, "{}", received.len());
}

#[tokio::test]
async fn unread_responses_over_http_2_end_without_their_connection() {
    let (addr, memory, _stop) = server();
    let stream = TcpStream::connect(addr).await.unwrap();
    let (mut client, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(0)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let mut responses = Vec::new();
    for _ in 0..STREAMS {
        let request = Request::get("http://x/").body(Empty::<Bytes>::new());
        responses.push(client.send_request(request.unwrap()).await.unwrap());
    }

    all_is_given_back(&memory).await;

    for response in responses {
        assert!(response.into_body().collect().await.is_err());
    }
    assert!(!connection.is_finished());
}

#[tokio::test]
async fn a_response_that_is_read_is_complete() {
    let (addr, memory, _stop) = server();
    let mut client = TcpStream::connect(addr).await.unwrap();
    client.write_all(REQUEST).await.unwrap();

    let mut received = Vec::new();
    let head_end = |received: &[u8]| received.windows(4).position(|four| four == b"\r\n\r\n");
    while head_end(&received).is_none_or(|end| received.len() < end + 4 + BODY) {
        client.read_buf(&mut received).await.unwrap();
    }

    let body = &received[received.len() - BODY..];
    assert!(body.iter().all(|byte| *byte == 7));
    all_is_given_back(&memory).await;
}

#[tokio::test]
async fn a_request_beyond_the_memory_of_its_client_is_refused_and_the_others_go_on() {
    let (release, released) = watch::channel(false);
    let waits = move |_: Request<Incoming>, memory: RequestMemory| {
        let mut released = released.clone();
        async move {
            if !memory.is_admitted() {
                return Response::new(Full::from("ignored"));
            }
            released.wait_for(|is_released| *is_released).await.unwrap();
            Response::new(Full::new(Bytes::new()))
        }
    };
    let (addr, memory, _stop) = server_of(2, waits);
    let stream = TcpStream::connect(addr).await.unwrap();
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut send = || {
        let request = Request::get("http://x/").body(Empty::<Bytes>::new());
        client.send_request(request.unwrap())
    };

    let [first, second, refused] = [send(), send(), send()];
    assert!(refused.await.is_err());
    let mut http1 = TcpStream::connect(addr).await.unwrap();
    http1.write_all(REQUEST).await.unwrap();
    let mut head = [0; 12];
    http1.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 503");

    release.send(true).unwrap();
    for response in [first.await, second.await] {
        assert_eq!(response.unwrap().status(), 200);
    }
    all_is_given_back(&memory).await;
    assert_eq!(send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn no_tunnel_is_opened() {
    let succeeds = async |_: Request<Incoming>, _| Response::new(Full::default());
    let (addr, memory, _stop) = server_of(1 << 30, succeeds);
    let stream = TcpStream::connect(addr).await.unwrap();
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);

    let request = Request::connect("x:80").body(Empty::<Bytes>::new());
    let response = client.send_request(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 501);
    let mut http1 = TcpStream::connect(addr).await.unwrap();
    let request = b"CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n";
    http1.write_all(request).await.unwrap();
    let mut head = [0; 12];
    http1.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 501");
    all_is_given_back(&memory).await;
}

#[test]
fn the_more_connections_a_peer_has_the_fewer_streams_has_each_new_one() {
    let http = Http {
        http1: None,
        max_header_list: 0,
        max_streams: 1280,
        ping_interval: LONG,
        request: 0,
    };
    let streams = [1, 4, 5, 40, 320, 4000].map(|connections| http.max_streams_of(connections));
    assert_eq!(streams, [1280, 1280, 1024, 128, 16, 16]);
}
