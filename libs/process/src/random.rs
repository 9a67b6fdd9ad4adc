//! Random numbers from the operating system, for keys, secrets and jitter.

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

/// `N` random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the operating system provides random bytes");
    bytes
}

/// `N` random bytes as text of `[A-Za-z0-9_-]`, which needs no escaping in forms or headers.
pub fn token<const N: usize>() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes::<N>())
}

/// A random number from 0 to 1, without 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub fn fraction() -> f64 {
    below(1 << 53) as f64 / (1_u64 << 53) as f64
}

/// A random number below a limit; 0 for the limit 0. The bias of the remainder is negligible for
/// jitter.
pub fn below(limit: u64) -> u64 {
    u64::from_le_bytes(bytes()).checked_rem(limit).unwrap_or(0)
}
