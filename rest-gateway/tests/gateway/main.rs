//! Tests of the gateway over real HTTP, with a fake core.
#![expect(
    clippy::unwrap_used,
    reason = "a failed test needs the backtrace, not an error"
)]

mod harness;

mod bodies;
mod caching;
mod conventions;
mod cors;
mod deliveries;
mod delivery_payload;
mod docs_page;
mod error_pages;
mod errors;
mod failover;
mod idempotency;
mod incomplete_bodies;
mod listing;
mod malformed_http;
mod preconditions;
mod public;
mod rate_limits;
mod retail_prices;
mod routes;
mod self_description;
mod server;
mod task_commands;
mod tasks;
mod time_slots;
mod tokens;
mod tracking;
mod webhooks;
