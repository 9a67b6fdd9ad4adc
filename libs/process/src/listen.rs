//! Binds the addresses that flags name, and accepts connections, as many as the system permits.

use std::{io, net::SocketAddr, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that wait to be accepted, if the system permits so many (`net.core.somaxconn`). With the
/// 128 of [`TcpListener::bind`], a burst of clients would exceed it: the system of a client that is
/// not answered tries again after a second.
const QUEUE_LENGTH: u32 = 4096;

/// What the system buffers of a response that is not read, in bytes. Otherwise this grows to megabytes.
const SEND_BUFFER: u32 = 128 * 1024;

/// Pause after a failed accept, usually caused by a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a program cannot listen on the address of a flag.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}; choose another address with {flag}, or port 0 for any free one")]
pub struct ListenError {
    pub addr: SocketAddr,
    pub flag: &'static str,
    pub source: io::Error,
}

/// Binds the address of a flag; port 0 is any free port. To be called in a tokio runtime.
pub fn listen(addr: SocketAddr, flag: &'static str) -> Result<TcpListener, ListenError> {
    bind(addr).map_err(|source| ListenError { addr, flag, source })
}

fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = match addr {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted program may listen although connections of the previous one are not forgotten yet.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(addr)?;
    socket.listen(QUEUE_LENGTH)
}

/// The next connection. Retries failed accepts after a pause, which a caller may end by calling again.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                let addr = listener.local_addr().ok().map(tracing::field::display);
                tracing::warn!(addr, %error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Raises the soft limit to the hard limit. Each client's connection is an open file, and the soft
/// limit of many systems is 1024.
pub fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        let initial = getrlimit(Resource::Nofile);

        raise_file_limit();

        let raised = getrlimit(Resource::Nofile);
        assert_eq!(
            (raised.current, raised.maximum),
            (initial.maximum, initial.maximum)
        );
    }
}
