//! The code that `build.rs` generates from `delivery/v1/*.proto`.
#![expect(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "the code is generated"
)]

tonic::include_proto!("delivery.v1");
