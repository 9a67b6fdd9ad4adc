//! Reproducible random choices: the same seed yields the same choices.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

const SEED: &str = "DELIVERY_CRASH_SEED";
const SECONDS: &str = "DELIVERY_CRASH_SECONDS";

/// `SplitMix64`, to choose what to kill and when.
pub(crate) struct Random(u64);

impl Random {
    /// Seeded from the environment, else differently in each run. Prints the seed, so that a failure
    /// can be repeated.
    pub(crate) fn seeded() -> Self {
        let seed = read_number(SEED).unwrap_or_else(|| RandomState::new().hash_one(SEED));
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

    /// Another generator, for what happens at the same time.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }

    /// One of the values, of which there must be one.
    pub(crate) fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        let index = self.below(u64::try_from(values.len()).unwrap());
        &values[usize::try_from(index).unwrap()]
    }

    /// The given values in random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, mut values: Vec<T>) -> Vec<T> {
        for end in (1..values.len()).rev() {
            let index = self.below(u64::try_from(end + 1).unwrap());
            values.swap(end, usize::try_from(index).unwrap());
        }
        values
    }
}

/// The duration that the environment sets for tests with faults one after the other, if any.
pub(crate) fn configured_duration() -> Option<Duration> {
    read_number(SECONDS).map(Duration::from_secs)
}

fn read_number(variable: &str) -> Option<u64> {
    let text = std::env::var_os(variable)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{variable}={} is not a number", text.display())))
}
