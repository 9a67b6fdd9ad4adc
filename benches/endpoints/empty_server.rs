//! The empty server: what the architecture costs with nothing in it. HTTP/1.1 by hyper, one gRPC call
//! over loopback to tonic in the same process, which carries nothing, and as many bytes over HTTP as the
//! path says.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use proto::{
    AccessToken, IssueTokenRequest, ListPublicKeysRequest, ListPublicKeysResponse,
    tokens_client::TokensClient,
    tokens_server::{Tokens, TokensServer},
};
use tokio::net::TcpListener;
use tonic::{
    Status,
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};

use crate::{load::Load, requests::get};

/// The argument of a process that runs the server.
pub(crate) const ARGUMENT: &str = "empty-server";

/// The bytes of a task.
pub(crate) const TASK: usize = 700;

/// About the bytes of a list of 30 deliveries.
pub(crate) const LIST: usize = 62_752;

static BODY: [u8; LIST] = [b' '; LIST];

/// The server, in a process of its own like the platform. Killed when it is dropped.
pub(crate) struct EmptyServer {
    process: Child,
    base_url: String,
}

impl EmptyServer {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(ARGUMENT)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut base_url = String::new();
        let stdout = process.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut base_url).unwrap();
        Self {
            process,
            base_url: base_url.trim_end().to_owned(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Requests of responses of as many bytes, at most [`LIST`].
    pub(crate) fn load(&self, bytes: usize, connections: usize) -> Load {
        let request = get(&format!("/{bytes}"), "");
        Load::new(&self.base_url, vec![request], connections)
    }
}

impl Drop for EmptyServer {
    fn drop(&mut self) {
        // Both fail if the process has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Serves until the process is killed, and prints the URL.
pub(crate) async fn serve() {
    let grpc = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", grpc.local_addr().unwrap());
    tokio::spawn(
        Server::builder()
            .add_service(TokensServer::new(Empty))
            .serve_with_incoming(TcpIncoming::from(grpc).with_nodelay(Some(true))),
    );
    let channel = Endpoint::from_shared(endpoint).unwrap().tcp_nodelay(true);
    let channel = channel.connect().await.unwrap();
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", http.local_addr().unwrap());
    loop {
        let (stream, _) = http.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let channel = channel.clone();
        let service = service_fn(move |request| respond(channel.clone(), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn respond(
    channel: Channel,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Status> {
    TokensClient::new(channel)
        .list_public_keys(ListPublicKeysRequest::default())
        .await?;
    let bytes: usize = request.uri().path()[1..].parse().unwrap();
    Ok(Response::new(Full::from(&BODY[..bytes])))
}

/// A service that does nothing.
struct Empty;

#[tonic::async_trait]
impl Tokens for Empty {
    async fn issue_token(
        &self,
        _: tonic::Request<IssueTokenRequest>,
    ) -> Result<tonic::Response<AccessToken>, Status> {
        Err(Status::unimplemented("not called"))
    }

    async fn list_public_keys(
        &self,
        _: tonic::Request<ListPublicKeysRequest>,
    ) -> Result<tonic::Response<ListPublicKeysResponse>, Status> {
        Ok(tonic::Response::new(ListPublicKeysResponse::default()))
    }
}
