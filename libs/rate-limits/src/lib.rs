//! Counts requests per key against a quota, in this process and in bounded memory.

mod keys;
mod limit;
mod limiter;

pub use keys::{credentials_key, peer_key};
pub use limit::RateLimit;
pub use limiter::{Limiter, Status, seconds_rounded_up};
