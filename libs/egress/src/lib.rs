//! Which addresses a request made on a client's behalf may reach. Pure: core asks when a webhook
//! is registered, the dispatcher's connector whenever it connects.

mod network;
mod policy;
mod routable;

pub use network::{Network, NetworkError};
pub use policy::{MAX_URL_LENGTH, Policy, Refused, UrlError};
pub use routable::is_globally_routable;
