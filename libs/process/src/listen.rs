//! Binds the addresses that flags name.

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

/// Why a program cannot listen on the address of a flag.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}; choose another address with {flag}, or port 0 for any free one")]
pub struct ListenError {
    pub addr: SocketAddr,
    pub flag: &'static str,
    pub source: io::Error,
}

/// Binds the address of a flag; port 0 is any free port.
pub async fn listen(addr: SocketAddr, flag: &'static str) -> Result<TcpListener, ListenError> {
    let listener = TcpListener::bind(addr).await;
    listener.map_err(|source| ListenError { addr, flag, source })
}
