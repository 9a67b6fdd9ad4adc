//! Admits connections, requests and bytes within limits, and serves them over HTTP.
//!
//! A connection has a [`Permit`] of a [`Pool`] from its accept to its end, a request one from its
//! head to the last byte that is written. All that the process holds for a peer is counted, and a
//! full pool takes from the peer that holds most. `serve` accepts, `connection` has the timeouts of a
//! connection, `response` counts what is unsent.

mod connection;
mod pool;
mod response;
mod serve;

pub use connection::{RequestMemory, Timeouts};
pub use pool::{Permit, Pool, Usage};
pub use serve::{Http, Http1, Peer, Server};
