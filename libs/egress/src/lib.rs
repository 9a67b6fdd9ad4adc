//! Restricts the addresses that requests to client-supplied URLs may reach. Core checks when a
//! webhook is registered, the dispatcher for every connection. Without I/O.

mod network;
mod policy;
mod routable;

pub use network::Network;
pub use policy::{Denied, MAX_URL_LENGTH, Policy, UrlError, host_and_port};
