//! Counts requests per key against a quota, in this process and in bounded memory.

mod limit;
mod limiter;

pub use limit::RateLimit;
pub use limiter::{Limiter, Status, credentials_key, peer_key, seconds_rounded_up};
