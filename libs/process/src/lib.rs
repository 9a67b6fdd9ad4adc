//! Code that all programs of the platform share: clock, command line, logs, metrics, listeners,
//! health checks, graceful shutdown, the service manager, random numbers; durations, numbers and
//! secrets in settings, TLS files, the version, traces, files that are read again when they change,
//! and calls within a process.

pub mod clock;
pub mod command_line;
pub mod duration;
pub mod health;
pub mod listen;
pub mod local_calls;
pub mod logs;
pub mod metrics;
pub mod number;
pub mod random;
pub mod redacted;
pub mod reloading;
pub mod secret_file;
pub mod service_manager;
pub mod shutdown;
pub mod tls;
pub mod traces;
pub mod version;

use std::alloc::{GlobalAlloc, Layout};

/// Every program's allocator: it serves 20 to 30 % more requests a second than the C library's
/// (`docs/decisions.md`).
pub use mimalloc::MiMalloc as Allocator;

/// Links mimalloc with programs whose Rust code has another allocator, such as tests: `SQLite` calls it
/// (`.cargo/config.toml`). GNU's linker takes from a library only what is missing when it reaches it, and may
/// reach mimalloc before `SQLite`.
#[used]
static LINKS_MIMALLOC: unsafe fn(&Allocator, Layout) -> *mut u8 = <Allocator as GlobalAlloc>::alloc;
