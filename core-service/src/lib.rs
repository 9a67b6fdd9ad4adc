//! The truth of the platform: every rule is in `domain`, every row in `storage`, every use case
//! in `grpc`.

pub mod domain;
