//! Code that all programs of the platform share: clock, command line, logs, health checks, graceful
//! shutdown, random numbers; durations, numbers and secrets in settings, TLS files, and
//! files that are read again when they change.

pub mod clock;
pub mod command_line;
pub mod duration;
pub mod file_descriptors;
pub mod health;
pub mod logs;
pub mod number;
pub mod random;
pub mod reloading;
pub mod secret_file;
pub mod shutdown;
pub mod tls;
