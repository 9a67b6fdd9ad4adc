//! A store's time slots: the definition its operator writes, the windows it offers at a moment,
//! and why another window is refused.

mod accept_language;
mod calendar;
mod choices;
mod definition;
pub mod label;
mod length;
mod opening_hours_specification;
mod openings;
mod refusal;
pub mod window;

use std::ops::RangeInclusive;

use jiff::civil::{Date, Time};

pub use length::Length;
pub use opening_hours_specification::OpeningHoursSpecification;
pub use refusal::{Reason, Refusal};

use crate::definition::Mistake;
use calendar::Calendar;
use openings::Openings;

/// A store's time slots, as its operator defines them.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSlot {
    display_name: String,
    /// At least one; each opens at least once a week.
    openings: Vec<Openings>,
    interval: Length,
    prior_notice: Option<Length>,
    same_day_cutoff: Option<Time>,
    previous_day_cutoff: Option<Time>,
    working_days_only: bool,
    slot_length: Option<Length>,
    closed: Vec<RangeInclusive<Date>>,
    /// At least 1.
    capacity: Option<u32>,
    offered_only: bool,
    calendar: Calendar,
}

impl TimeSlot {
    /// Reads a definition in TOML for a store in a country (ISO 3166-1 alpha-2, for its public
    /// holidays and weekend). Finds all mistakes at once, in the order of the text (the
    /// first 20 of them).
    pub fn parse(definition: &str, country: &str) -> Result<Self, Vec<Mistake>> {
        definition::parse(definition, country)
    }

    pub fn display_name(&self) -> &str {
        &self.display_name
    }

    /// How far ahead a slot may start.
    pub fn interval(&self) -> Length {
        self.interval
    }

    /// How long before its start a slot must be booked.
    pub fn prior_notice(&self) -> Option<Length> {
        self.prior_notice
    }

    pub fn working_days_only(&self) -> bool {
        self.working_days_only
    }

    /// How many deliveries fit into each slot; any number if absent.
    pub fn capacity(&self) -> Option<u32> {
        self.capacity
    }

    /// Whether a window that is not offered is refused. A capacity implies it.
    pub fn offered_only(&self) -> bool {
        self.offered_only || self.capacity.is_some()
    }
}
