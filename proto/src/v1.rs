//! What `build.rs` generates from `delivery/v1/*.proto`.
#![expect(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "generated code is not ours to style"
)]

tonic::include_proto!("delivery.v1");
