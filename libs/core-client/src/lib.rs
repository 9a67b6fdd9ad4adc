//! How a core is called: by its URL, over TLS where that says so, at every address its name has.

mod connecting;
mod core_url;
mod cores;
mod failure;
mod membership;
mod tls;

pub use connecting::ConnectError;
pub use core_url::{CoreUrl, InvalidCoreUrl};
pub use cores::{CoreAddr, CoreConfig, Cores, Error};
pub use failure::{causes, is_caused_by, tls_advice};
pub use membership::{Membership, Resolve};
