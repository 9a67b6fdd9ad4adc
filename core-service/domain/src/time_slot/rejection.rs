//! The reasons why a window can't be booked.

use jiff::civil::{Date, Time};

use super::CalendarDuration;

#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum Reason {
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
