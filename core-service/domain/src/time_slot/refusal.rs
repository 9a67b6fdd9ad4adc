//! Why a window can't be booked, in words for the shop's developer.

use jiff::civil::{Date, Time};

use super::Length;
use crate::task::TimeWindow;

/// A window that can't be booked, why, and the next one that can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the slot {slot} can't be booked: {reason}; {}", next_words(.next_text.as_deref()))]
pub struct Refusal {
    /// The window, on the store's clock.
    pub(super) slot: String,
    pub reason: Reason,
    /// The first offered window that does not start before the refused one, else the first
    /// offered at all.
    pub next: Option<TimeWindow>,
    pub(super) next_text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("the store offers no slot with this start and end")]
    NoSuchSlot,
    #[error("the store is closed on {0}")]
    Closed(Date),
    #[error("{0} is a public holiday")]
    Holiday(Date),
    #[error("{0} is at a weekend")]
    Weekend(Date),
    #[error("it has begun")]
    Begun,
    #[error("past cutoff, today's slots could be booked until {}", .0.strftime("%H:%M"))]
    PastSameDayCutoff(Time),
    #[error("past cutoff, tomorrow's slots could be booked until {}", .0.strftime("%H:%M"))]
    PastPreviousDayCutoff(Time),
    #[error("too late, a slot is booked at least {0} before it starts")]
    TooLate(Length),
    #[error("too early, slots are offered {0} ahead")]
    TooEarly(Length),
    #[error("full, all places are taken ({0})")]
    Full(u32),
}

fn next_words(next: Option<&str>) -> String {
    next.map_or_else(
        || "no other can be booked now".to_owned(),
        |next| format!("the next that can is {next}"),
    )
}
