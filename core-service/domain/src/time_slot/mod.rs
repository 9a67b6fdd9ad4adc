//! A store's time slots: their definition in TOML, the windows offered at an instant, and the
//! reasons for rejecting other windows.

mod calendar;
mod calendar_duration;
mod choices;
mod definition;
pub mod label;
mod opening_hours_entry;
mod opening_hours_specification;
pub mod window;

use std::ops::RangeInclusive;

use jiff::civil::{Date, Time};
use serde::Deserialize;

pub use calendar_duration::CalendarDuration;
pub use opening_hours_specification::OpeningHoursSpecification;

use calendar::Calendar;
use opening_hours_entry::OpeningHoursEntry;

/// A store's time slot, parsed from the operator's definition. The windows that its opening hours
/// define are called slots.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSlot {
    pub display_name: String,
    /// At least one entry; each opens at least once a week.
    opening_hours: Vec<OpeningHoursEntry>,
    /// How far ahead a slot may start.
    pub interval: CalendarDuration,
    /// How long before its start a slot must be booked.
    pub prior_notice: Option<CalendarDuration>,
    same_day_cutoff: Option<Time>,
    previous_day_cutoff: Option<Time>,
    pub working_days_only: bool,
    /// The length of a slot; a whole range of the opening hours if absent.
    slot_minutes: Option<i64>,
    closed: Vec<RangeInclusive<Date>>,
    /// Deliveries per slot, at least 1; unlimited if absent.
    pub capacity: Option<u32>,
    slot_policy: SlotPolicy,
    calendar: Calendar,
}

/// Which times of a task a store accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SlotPolicy {
    /// Any window, and any `before` without a window.
    #[default]
    Any,
    /// Only choices as windows, but any `before`.
    Offered,
    /// Like `Offered`; a dropoff must name a choice.
    Required,
}

impl TimeSlot {
    /// Whether a window that is not offered is rejected. A capacity implies it.
    pub fn offered_only(&self) -> bool {
        self.slot_policy != SlotPolicy::Any || self.capacity.is_some()
    }
}
