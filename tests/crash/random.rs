//! Reproducible random choices: the same seed yields the same choices.

use std::time::Duration;

const SEED: &str = "DELIVERY_CRASH_SEED";
const SECONDS: &str = "DELIVERY_CRASH_SECONDS";

/// `SplitMix64`, to choose what to kill and when.
pub(crate) struct Random(u64);

impl Random {
    /// Seeded from the environment, else with 1.
    pub(crate) fn seeded() -> Self {
        let seed = read_number(SEED).unwrap_or(1);
        crate::report(&format!("{SEED}={seed}"));
        Self(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// One of the given values.
    pub(crate) fn choose<T: Copy>(&mut self, among: &[T]) -> T {
        let index = self.below(u64::try_from(among.len()).unwrap());
        among[usize::try_from(index).unwrap()]
    }
}

/// The duration of the kill tests set in the environment, if any.
pub(crate) fn configured_duration() -> Option<Duration> {
    read_number(SECONDS).map(Duration::from_secs)
}

fn read_number(variable: &str) -> Option<u64> {
    let text = std::env::var_os(variable)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{variable} is a number, not {}", text.display())))
}
