//! Price lists: rules written by the operator that calculate and explain the price of a delivery.

mod calculation;
mod charge;
mod check;
mod condition;
mod definition;
mod functions;
mod list;
mod parse;
mod sample_inputs;
#[cfg(test)]
mod tests;
mod totals;
mod variables;
mod warnings;

pub use calculation::{Calculation, RuleOutcome};
pub use list::PriceList;
