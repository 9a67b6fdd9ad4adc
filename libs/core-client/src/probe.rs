//! Finds out whether a server that does not answer as a core speaks another protocol.

use std::{io, sync::Arc, time::Duration};

use process::tls;
use rustls::{RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{connector::ConnectError, core_url::CoreAddr, error_chain::causes};

/// Limit for each attempt.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The beginning of every HTTP/1 response.
const HTTP_1: &[u8] = b"HTTP/1.";

/// Tries TLS and HTTP/1 at a plaintext URL that may name a server of another protocol by mistake;
/// `None` if the server speaks neither.
pub(crate) async fn wrong_protocol(core: &CoreAddr) -> Option<ConnectError> {
    if core.url.is_tls() {
        return None;
    }
    let url = core.url.to_string();
    if matches!(timeout(TIMEOUT, speaks_tls(core)).await, Ok(Ok(true))) {
        let authority = url.trim_start_matches("http://");
        return Some(ConnectError(format!(
            "this core speaks TLS: write https://{authority} instead of http://{authority}"
        )));
    }
    if matches!(timeout(TIMEOUT, speaks_http_1(core)).await, Ok(Ok(true))) {
        return Some(ConnectError(format!(
            "{url} is a REST port, such as a gateway's: give the gRPC address of a core, such as http://127.0.0.1:50051"
        )));
    }
    None
}

/// A server that speaks TLS accepts the handshake, rejects it with an alert, or has a certificate
/// that this client rejects.
async fn speaks_tls(core: &CoreAddr) -> io::Result<bool> {
    let config = tls::client(RootCertStore::empty())
        .map_err(io::Error::other)?
        .with_no_client_auth();
    let name = ServerName::try_from(core.url.host()).map_err(io::Error::other)?;
    let stream = TcpStream::connect(core.addr).await?;
    let connected = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await;
    Ok(match connected {
        Ok(_) => true,
        Err(error) => matches!(
            causes(&error).find_map(|cause| cause.downcast_ref::<rustls::Error>()),
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_))
        ),
    })
}

async fn speaks_http_1(core: &CoreAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(core.addr).await?;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n")
        .await?;
    let mut start = [0; HTTP_1.len()];
    stream.read_exact(&mut start).await?;
    Ok(start == HTTP_1)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// The protocol that is found at a server with these first bytes of each response.
    async fn protocol_of(response: &'static [u8]) -> (String, Option<ConnectError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(response).await;
            }
        });
        let url = format!("http://{addr}");
        let core = CoreAddr {
            url: Arc::new(url.parse().unwrap()),
            addr,
        };
        let found = wrong_protocol(&core).await;
        server.abort();
        (url, found)
    }

    #[tokio::test]
    async fn only_a_server_that_answers_in_http_1_is_reported_as_rest() {
        let (url, found) = protocol_of(b"HTTP/1.1 404 Not Found\r\n\r\n").await;
        let message = found.unwrap().to_string();
        assert!(
            message.starts_with(&format!("{url} is a REST port")),
            "{message}"
        );

        let (_, found) = protocol_of(b"220 mail.example ESMTP\r\n").await;
        assert!(found.is_none(), "{found:?}");
    }
}
