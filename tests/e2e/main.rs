//! End-to-end tests: the platform as a black box over real HTTP, gRPC and webhooks, on SQLite and
//! PostgreSQL.
//!
//! Each test runs against a started platform and checks one behaviour; `harness` has the clients.
//! Quotations in comments are from the specification.
#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test and reports its location"
)]

#[macro_use]
mod harness;

mod abuse;
mod abuse_grpc;
mod abuse_health;
mod all_stores;
mod cancelling;
mod completing;
mod core_rate_limits;
mod couriers;
mod deadlines;
mod deliveries;
mod demo;
mod errors;
mod events;
mod examples;
mod existing_clients;
mod grpc_tls;
mod idempotency;
mod incomplete_bodies;
mod iris;
mod journey;
mod lifecycle;
mod operator;
mod own_resources;
mod personal_data;
mod request_schemas;
mod response_headers;
mod rest_tls;
mod retail_prices;
mod scopes;
mod startup;
mod statements;
mod tasks;
mod time_slots;
mod tokens;
mod tracking;
mod violation_examples;
mod webhooks;
mod zones;
