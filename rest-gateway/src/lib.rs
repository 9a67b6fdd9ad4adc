//! The front door: translates the REST API into gRPC; decides nothing, stores nothing.
//!
//! A request's way: `service` → `stack` → `routes` → one file of `resources` → `core`; every
//! failure on it is an `error::Error`, turned into an answer by `problem` alone.

mod config;
mod service;
mod stack;

mod rescue;
mod routes;

mod body;
mod client_words;
mod core;
mod error;
mod error_codes;
mod json;
mod json_ld;
mod media_type;
mod problem;
mod report;
mod request;
mod resources;

pub use config::Config;
pub use service::RestGateway;
