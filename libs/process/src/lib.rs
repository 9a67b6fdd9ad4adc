//! What every program of the platform owes whoever runs it: logs, a sentence when it can't go
//! on, an end when it is told to, health, and care with secrets.

pub mod clock;
pub mod command_line;
pub mod file_descriptors;
pub mod health;
pub mod logs;
pub mod random;
pub mod secret_file;
pub mod sentence;
pub mod shutdown;
pub mod tls;
