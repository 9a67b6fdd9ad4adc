//! The ranges of numbers in the contract. The gateway and core reject a number in the same words.

use std::fmt;

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

    /// Why a number is rejected that is out of range, with the number as the client wrote it.
    pub fn rejection(&self, number: impl fmt::Display) -> String {
        let Self { min, max, unit } = self;
        format!("must be from {min} to {max}{unit}, not {number}")
    }
}
