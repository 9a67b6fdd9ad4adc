//! The gateway from outside: real HTTP in front, a fake core behind.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first surprise, with a backtrace"
)]

mod harness;

mod bodies;
mod browsers;
mod conventions;
mod cores;
mod deliveries;
mod delivery_payload;
mod errors;
mod idempotency;
mod listing;
mod polling;
mod public;
mod rate_limits;
mod retail_prices;
mod self_description;
mod server;
mod tasks;
mod time_slots;
mod tokens;
mod webhooks;
