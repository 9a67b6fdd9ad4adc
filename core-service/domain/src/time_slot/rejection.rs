//! The reasons why a window can't be booked.

use jiff::civil::{Date, Time};

use super::CalendarDuration;
use crate::task::TimeWindow;

/// A window that can't be booked, the reason, and the next window that can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the slot {slot} can't be booked: {reason}; {}", next_slot(.next_text.as_deref()))]
pub struct Rejection {
    /// The rejected window in the store's time zone.
    pub(super) slot: String,
    pub reason: Reason,
    /// The first offered window that starts when the rejected one does or later, otherwise the
    /// first offered window.
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
    #[error("{0} is on a weekend")]
    Weekend(Date),
    #[error("it has already started")]
    Started,
    #[error("past cutoff, today's slots could be booked until {}", .0.strftime("%H:%M"))]
    PastSameDayCutoff(Time),
    #[error("past cutoff, tomorrow's slots could be booked until {}", .0.strftime("%H:%M"))]
    PastPreviousDayCutoff(Time),
    #[error("too late, a slot is booked at least {0} before it starts")]
    InsufficientNotice(CalendarDuration),
    #[error("too early, slots are offered {0} ahead")]
    BeyondInterval(CalendarDuration),
    #[error("full, its capacity of {0} is booked")]
    Full(u32),
}

/// A dropoff without a window, of a store that requires one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is required: the store delivers in the slots that it offers; {}", next_slot(.next_text.as_deref()))]
pub struct MissingSlot {
    /// The first offered window.
    pub(super) next_text: Option<String>,
}

fn next_slot(next: Option<&str>) -> String {
    next.map_or_else(
        || "no slot can be booked now".to_owned(),
        |next| format!("the next available slot is {next}"),
    )
}
