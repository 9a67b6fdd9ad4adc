//! The limits of values in the contract. The gateway and core reject a number in the same words.

use std::fmt;

/// Limits of each text, in characters.
pub const MAX_TEXT: usize = 500;
pub const MAX_LONG_TEXT: usize = 5_000;
pub const MAX_NOTES: usize = 2_000;
pub const MAX_NAME: usize = 200;
pub const MAX_TAG: usize = 64;
/// Limits of lists, in elements.
pub const MAX_TAGS: usize = 50;
pub const MAX_METADATA: usize = 50;
pub const MAX_PACKAGES: usize = 100;
/// Tasks of a request that changes several.
pub const MAX_BATCH: usize = 100;
/// Members of a page.
pub const MAX_PAGE_SIZE: u32 = 100;

/// The texts of a task, in bytes of UTF-8: a real one has less than a tenth.
pub const MAX_TASK_TEXTS: usize = 32 * 1024;

/// Grams, up to a hundred tonnes.
pub const WEIGHT: NumberRange = NumberRange {
    min: 0,
    max: 100_000_000,
    unit: " (grams)",
};
/// Packages of one type.
pub const QUANTITY: NumberRange = NumberRange {
    min: 1,
    max: 10_000,
    unit: "",
};

/// The numbers that a field accepts.
#[derive(Debug)]
pub struct NumberRange {
    min: i64,
    max: i64,
    unit: &'static str,
}

impl NumberRange {
    /// The number, or why it is rejected.
    ///
    /// # Errors
    ///
    /// [`NumberRange::rejection`], if it is out of range.
    pub fn check(&self, number: i64) -> Result<i64, String> {
        if (self.min..=self.max).contains(&number) {
            Ok(number)
        } else {
            Err(self.rejection(number))
        }
    }

    /// Why a request without the number is rejected.
    pub fn requirement(&self) -> String {
        let Self { min, max, unit } = self;
        format!("is required: a whole number from {min} to {max}{unit}")
    }

    /// Why a number is rejected that is out of range, with the number as the client wrote it.
    pub fn rejection(&self, number: impl fmt::Display) -> String {
        let Self { min, max, unit } = self;
        format!("must be from {min} to {max}{unit}, not {number}")
    }
}
