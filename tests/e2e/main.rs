//! The platform from outside: real HTTP, real gRPC, real webhooks, on SQLite and on PostgreSQL.
//!
//! A test takes a running platform and makes one claim; see `harness` for the roles it can play.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

#[macro_use]
mod harness;

mod abuse;
mod cancelling;
mod completing;
mod deadlines;
mod deliveries;
mod drop_in;
mod errors;
mod events;
mod examples;
mod idempotency;
mod journey;
mod json_ld;
mod operator;
mod retail_prices;
mod scopes;
mod shop;
mod startup;
mod tasks;
mod time_slots;
mod tokens;
mod webhooks;
mod zones;
