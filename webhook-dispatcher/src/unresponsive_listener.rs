//! For tests: an address where connection attempts neither succeed nor fail.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};

/// A listener with a full backlog: the system does not answer further connection attempts.
pub(crate) struct UnresponsiveListener {
    pub addr: SocketAddr,
    _listener: TcpListener,
    _backlog: Vec<TcpStream>,
}

impl UnresponsiveListener {
    /// Listens at an address; port 0 is any free port.
    pub(crate) async fn start(addr: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(addr).unwrap();
        let listener = socket.listen(1).unwrap();
        let addr = listener.local_addr().unwrap();
        let mut backlog = Vec::new();
        // Connections over loopback are accepted immediately while the backlog has capacity.
        while let Ok(stream) = timeout(Duration::from_millis(500), TcpStream::connect(addr)).await {
            backlog.push(stream.unwrap());
        }
        Self {
            addr,
            _listener: listener,
            _backlog: backlog,
        }
    }
}
