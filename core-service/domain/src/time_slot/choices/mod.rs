//! The windows offered at an instant, and why any other is rejected. The same checks decide both,
//! so that exactly the listed windows can be booked.

use std::ops::Range;

use jiff::{
    Timestamp, Zoned,
    civil::{Date, Time},
    tz::TimeZone,
};

use super::{
    CalendarDuration, SlotPolicy, TimeSlot,
    opening_hours_entry::Hours,
    window::{self, first_instant},
};
use crate::task::TimeWindow;

/// Why a window can't be booked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Reason {
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

/// A window that the opening hours define, offered or not.
struct Slot {
    /// Its local start date, to which closed days and cutoffs apply.
    day: Date,
    window: TimeWindow,
}

/// The limits of a definition as instants and dates, evaluated at `now`.
struct BookingLimits {
    now: Timestamp,
    today: Date,
    zone: TimeZone,
    /// The first permitted start.
    earliest: Timestamp,
    /// The first start that is too far ahead.
    horizon: Timestamp,
    /// The same-day cutoff, if it has passed.
    past_same_day_cutoff: Option<Time>,
    /// The cutoff for the next day, if it has passed.
    past_previous_day_cutoff: Option<Time>,
}

impl TimeSlot {
    /// The windows offered at `now`, in the time zone of `now`, sorted by start, then end.
    /// `booked` returns the number of deliveries in a window; it is called only if there is a
    /// capacity.
    pub fn choices(&self, now: &Zoned, booked: impl Fn(TimeWindow) -> u32) -> Vec<TimeWindow> {
        let limits = BookingLimits::new(self, now);
        let last = limits.horizon.to_zoned(limits.zone.clone()).date();
        self.slots(
            Hours::AsWritten,
            limits.today..day_after(last),
            &limits.zone,
        )
        .into_iter()
        .filter(|slot| self.reason_not_offered(slot, &limits, &booked).is_none())
        .map(|slot| slot.window)
        .collect()
    }

    /// Why a window can't be booked at `now`, and the next one that can: the first choice that
    /// starts when this window does or later, otherwise the first. `None` if it is a choice.
    pub fn rejection(
        &self,
        window: TimeWindow,
        now: &Zoned,
        booked: impl Fn(TimeWindow) -> u32,
    ) -> Option<String> {
        let limits = BookingLimits::new(self, now);
        let day = window.after.to_zoned(limits.zone.clone()).date();
        let days = days_around(window, &limits.zone);
        let reason = match self
            .slots(Hours::AsWritten, days, &limits.zone)
            .iter()
            .find(|slot| slot.window == window)
        {
            Some(slot) => self.reason_not_offered(slot, &limits, &booked)?,
            None => self.reason_outside_opening_hours(&Slot { day, window }, &limits.zone),
        };

        let offered = self.choices(now, booked);
        let next = offered
            .iter()
            .find(|choice| choice.after >= window.after)
            .or(offered.first());
        Some(format!(
            "the slot {} is not offered: {reason}; {}",
            window::text(window, &limits.zone),
            next_slot(next, &limits.zone)
        ))
    }

    /// Whether the opening hours define a window, offered or not.
    pub fn defines(&self, window: TimeWindow, zone: &TimeZone) -> bool {
        let slots = self.slots(Hours::AsWritten, days_around(window, zone), zone);
        slots.iter().any(|slot| slot.window == window)
    }

    /// Why a dropoff can't be booked without a window at `now`; `None` if none is required.
    pub fn missing_slot(&self, now: &Zoned, booked: impl Fn(TimeWindow) -> u32) -> Option<String> {
        (self.slot_policy == SlotPolicy::Required).then(|| {
            let next = next_slot(self.choices(now, booked).first(), now.time_zone());
            format!("is required: the store delivers in the slots that it offers; {next}")
        })
    }

    /// The slots of the opening hours that start on these days, sorted, without duplicates.
    fn slots(&self, hours: Hours, days: Range<Date>, zone: &TimeZone) -> Vec<Slot> {
        let mut slots: Vec<_> = self
            .opening_hours
            .iter()
            .flat_map(|entry| entry.slots(hours, days.clone(), self.slot_minutes))
            .filter_map(|range| {
                let window = TimeWindow {
                    after: first_instant(range.start, zone).ok()?,
                    before: first_instant(range.end, zone).ok()?,
                };
                // A clock change may skip a whole slot.
                (window.after < window.before).then(|| Slot {
                    day: range.start.date(),
                    window,
                })
            })
            .collect();
        slots.sort_by_key(|slot| (slot.window.after, slot.window.before));
        slots.dedup_by_key(|slot| slot.window);
        slots
    }

    /// The reason why a slot of the opening hours is not offered.
    fn reason_not_offered(
        &self,
        slot: &Slot,
        limits: &BookingLimits,
        booked: impl Fn(TimeWindow) -> u32,
    ) -> Option<Reason> {
        let start = slot.window.after;
        if let Some(reason) = self.reason_closed(slot.day) {
            return Some(reason);
        }
        if start < limits.now {
            return Some(Reason::Started);
        }
        if let Some(cutoff) = limits.past_same_day_cutoff
            && slot.day == limits.today
        {
            return Some(Reason::PastSameDayCutoff(cutoff));
        }
        if let Some(cutoff) = limits.past_previous_day_cutoff
            && slot.day == day_after(limits.today)
        {
            return Some(Reason::PastPreviousDayCutoff(cutoff));
        }
        if let Some(notice) = self.prior_notice
            && start < limits.earliest
        {
            return Some(Reason::InsufficientNotice(notice));
        }
        if start >= limits.horizon {
            return Some(Reason::BeyondInterval(self.interval));
        }
        let capacity = self.capacity?;
        (booked(slot.window) >= capacity).then_some(Reason::Full(capacity))
    }

    /// The reason why a window is not a slot of the opening hours: its day is closed, or the
    /// regular week has no such slot.
    fn reason_outside_opening_hours(&self, slot: &Slot, zone: &TimeZone) -> Reason {
        if let Some(reason) = self.reason_closed(slot.day) {
            return reason;
        }
        let weekly = self.slots(Hours::RegularWeek, slot.day..day_after(slot.day), zone);
        if !weekly.iter().any(|other| other.window == slot.window) {
            return Reason::NoSuchSlot;
        }
        if self.calendar.is_holiday(slot.day) {
            Reason::Holiday(slot.day)
        } else {
            Reason::Closed(slot.day)
        }
    }

    /// The reason why a day is closed, apart from `opening_hours`.
    fn reason_closed(&self, day: Date) -> Option<Reason> {
        if self.closed.iter().any(|dates| dates.contains(&day)) {
            return Some(Reason::Closed(day));
        }
        if !self.working_days_only {
            return None;
        }
        if self.calendar.is_holiday(day) {
            return Some(Reason::Holiday(day));
        }
        self.calendar
            .is_weekend(day.weekday())
            .then_some(Reason::Weekend(day))
    }

    /// Whether a day has slots in the regular week, but is closed on this date.
    pub(super) fn is_closed_on(&self, day: Date) -> bool {
        let any = |hours| {
            let days = day..day_after(day);
            self.opening_hours.iter().any(|entry| {
                !entry
                    .slots(hours, days.clone(), self.slot_minutes)
                    .is_empty()
            })
        };
        any(Hours::RegularWeek) && (self.reason_closed(day).is_some() || !any(Hours::AsWritten))
    }
}

impl BookingLimits {
    fn new(time_slot: &TimeSlot, now: &Zoned) -> Self {
        let today = now.date();
        let is_past = |cutoff: &Time| {
            first_instant(today.to_datetime(*cutoff), now.time_zone())
                .is_ok_and(|cutoff| now.timestamp() > cutoff)
        };
        Self {
            now: now.timestamp(),
            today,
            zone: now.time_zone().clone(),
            earliest: time_slot
                .prior_notice
                .map_or(now.timestamp(), |notice| notice.after(now)),
            horizon: time_slot.interval.after(now),
            past_same_day_cutoff: time_slot.same_day_cutoff.filter(is_past),
            past_previous_day_cutoff: time_slot.previous_day_cutoff.filter(is_past),
        }
    }
}

/// The days on which a slot with a window may start. If clocks skip midnight, a slot's day differs from the day of
/// its first instant.
fn days_around(window: TimeWindow, zone: &TimeZone) -> Range<Date> {
    let day = window.after.to_zoned(zone.clone()).date();
    day.yesterday().unwrap_or(day)..day_after(day_after(day))
}

fn next_slot(next: Option<&TimeWindow>, zone: &TimeZone) -> String {
    match next {
        Some(next) => format!("the next available slot is {}", window::text(*next, zone)),
        None => "no slot can be booked now".to_owned(),
    }
}

fn day_after(day: Date) -> Date {
    day.tomorrow().unwrap_or(Date::MAX)
}

#[cfg(test)]
mod tests;
