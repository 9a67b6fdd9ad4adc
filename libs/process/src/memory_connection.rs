//! Connections between the services of one process, without a socket.

use std::io;

use tokio::{io::DuplexStream, sync::mpsc};

/// The buffer of each direction, in bytes. Most messages and their headers fit into it.
const BUFFER: usize = 64 * 1024;

/// How many connections wait to be accepted.
const BACKLOG: usize = 16;

/// The accepted ends of the connections that a [`MemoryConnector`] opens.
pub type MemoryListener = mpsc::Receiver<DuplexStream>;

/// Opens connections to a [`MemoryListener`]. Clones open them to the same one.
#[derive(Clone, Debug)]
pub struct MemoryConnector(mpsc::Sender<DuplexStream>);

/// A listener and what connects to it.
pub fn memory_listener() -> (MemoryConnector, MemoryListener) {
    let (connections, listener) = mpsc::channel(BACKLOG);
    (MemoryConnector(connections), listener)
}

impl MemoryConnector {
    /// Opens a connection. Fails once the listener is dropped.
    pub async fn connect(&self) -> io::Result<DuplexStream> {
        let (client, server) = tokio::io::duplex(BUFFER);
        let sent = self.0.send(server).await;
        sent.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        Ok(client)
    }
}

impl PartialEq for MemoryConnector {
    fn eq(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}

impl Eq for MemoryConnector {}
