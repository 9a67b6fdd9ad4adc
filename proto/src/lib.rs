//! The contract between the services: the generated package `delivery.v1`, resource names, IRIs, limits
//! and the choice of a language.

mod duration;
pub mod iri;
pub mod language;
pub mod limits;
pub mod public_url;
mod redacted;
mod v1;

pub use duration::microseconds;
pub use v1::*;

/// The encoded `FileDescriptorSet` of the package, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The metadata key that marks a replayed response; its value is `true`.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";

/// The metadata key that marks a response whose caller sees the states of tasks as their statuses; its value is `true`.
pub const FULL_TASK_STATUS: &str = "full-task-status";

/// The metadata key that marks a response whose caller sees the couriers of tasks, as shops do not; its value is `true`.
pub const SEES_COURIERS: &str = "sees-couriers";

/// The metadata key in which a gateway names the address of its client, for a call without a token.
pub const FORWARDED_FOR: &str = "x-forwarded-for";

/// The `reason` of a call that failed with `UNAVAILABLE` before it wrote anything.
pub const NOT_EXECUTED: &str = "NOT_EXECUTED";

/// The `domain` of every `google.rpc.ErrorInfo` that core sends.
pub const ERROR_DOMAIN: &str = "delivery";

/// The names of the gRPC status codes, by number.
pub const CODE_NAMES: &[&str] = &[
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
