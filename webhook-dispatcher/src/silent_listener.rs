//! For tests: an address at which connecting is never answered, neither well nor badly.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};

/// A listener whose queue is full: the system says nothing to whoever comes then.
pub(crate) struct SilentListener {
    pub addr: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl SilentListener {
    /// On an address with any port.
    pub(crate) async fn start(addr: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(addr).unwrap();
        let listener = socket.listen(1).unwrap();
        let addr = listener.local_addr().unwrap();
        let mut queue = Vec::new();
        // Over loopback who is answered is so at once.
        while let Ok(stream) = timeout(Duration::from_millis(500), TcpStream::connect(addr)).await {
            queue.push(stream.unwrap());
        }
        Self {
            addr,
            _listener: listener,
            _queue: queue,
        }
    }
}
