//! The contract between the services: the generated package `delivery.v1`, and the one place
//! that spells resource names and IRIs.

pub mod iri;
pub mod public_url;
mod v1;

pub use v1::*;

/// The encoded `FileDescriptorSet` of the package, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Metadata of an answer that was given before, to the same request: `true`.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";

/// `domain` of every `google.rpc.ErrorInfo` that core sends.
pub const ERROR_DOMAIN: &str = "delivery";
