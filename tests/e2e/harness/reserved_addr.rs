//! Addresses for servers that print no address, or that are restarted on the same one.

use std::{
    collections::BTreeSet,
    net::{SocketAddr, TcpListener},
    sync::Mutex,
};

/// A free loopback address that a server can be restarted on. Its port is below the ephemeral range,
/// so that no other process gets it meanwhile.
pub(crate) fn reserve_addr() -> SocketAddr {
    static RESERVED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut reserved = RESERVED.lock().unwrap();
    // Concurrent test processes use other ranges.
    let first = 20_000 + u16::try_from(std::process::id() % 400).unwrap() * 25;
    (first..32_000)
        .filter(|port| !reserved.contains(port))
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .find(|addr| TcpListener::bind(addr).is_ok())
        .inspect(|addr| {
            reserved.insert(addr.port());
        })
        .expect("a port should be free")
}
