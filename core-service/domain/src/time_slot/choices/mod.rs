//! Which windows are offered at a moment, and why another is not: one evaluator for both, so
//! that what is listed can be booked and nothing else.

use std::ops::Range;

use jiff::{
    Timestamp, Zoned,
    civil::{Date, Time},
    tz::TimeZone,
};

use super::{
    Reason, Refusal, TimeSlot,
    openings::Pattern,
    window::{self, first_instant},
};
use crate::task::TimeWindow;

/// A window of the pattern, offered or not.
struct Slot {
    /// The day it starts on the clock, which decides on closings and cutoffs.
    day: Date,
    window: TimeWindow,
}

/// What the definition's rules come to at a moment.
struct Moment {
    now: Timestamp,
    today: Date,
    zone: TimeZone,
    /// The first instant a slot may start.
    earliest: Timestamp,
    /// The first instant at which it is too far ahead.
    too_early: Timestamp,
    past_same_day_cutoff: Option<Time>,
    past_previous_day_cutoff: Option<Time>,
}

impl TimeSlot {
    /// The windows offered at `now`, whose zone is the store's, in order of start, then end.
    /// `booked` says how many deliveries a window has; it is asked only of a store with a
    /// capacity.
    pub fn choices(&self, now: &Zoned, booked: impl Fn(TimeWindow) -> u32) -> Vec<TimeWindow> {
        let moment = Moment::new(self, now);
        let last = moment.too_early.to_zoned(moment.zone.clone()).date();
        self.slots(Pattern::Actual, moment.today..after(last), &moment.zone)
            .into_iter()
            .filter(|slot| self.objection(slot, &moment, &booked).is_none())
            .map(|slot| slot.window)
            .collect()
    }

    /// Why a window can't be booked at `now`; `None` if it can: exactly if it is one of the
    /// choices.
    pub fn refuses(
        &self,
        window: TimeWindow,
        now: &Zoned,
        booked: impl Fn(TimeWindow) -> u32,
    ) -> Option<Refusal> {
        let moment = Moment::new(self, now);
        let day = window.after.to_zoned(moment.zone.clone()).date();
        // Where clocks skip midnight, a slot's day on the clock is not its instant's.
        let days = day.yesterday().unwrap_or(day)..after(after(day));
        let reason = match self
            .slots(Pattern::Actual, days, &moment.zone)
            .iter()
            .find(|slot| slot.window == window)
        {
            Some(slot) => self.objection(slot, &moment, &booked)?,
            None => self.absence(&Slot { day, window }, &moment.zone),
        };

        let offered = self.choices(now, booked);
        let next = offered
            .iter()
            .find(|choice| choice.after >= window.after)
            .or(offered.first())
            .copied();
        Some(Refusal {
            slot: window::text(window, &moment.zone),
            reason,
            next_text: next.map(|next| window::text(next, &moment.zone)),
            next,
        })
    }

    /// The pattern's slots that start on these days, in order, each once.
    fn slots(&self, pattern: Pattern, days: Range<Date>, zone: &TimeZone) -> Vec<Slot> {
        let mut slots: Vec<_> = self
            .openings
            .iter()
            .flat_map(|openings| openings.slots(pattern, days.clone(), self.slot_minutes()))
            .filter_map(|range| {
                let window = TimeWindow {
                    after: first_instant(range.start, zone).ok()?,
                    before: first_instant(range.end, zone).ok()?,
                };
                // The clocks may skip a slot altogether.
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

    /// Why a slot of the pattern is not offered.
    fn objection(
        &self,
        slot: &Slot,
        moment: &Moment,
        booked: impl Fn(TimeWindow) -> u32,
    ) -> Option<Reason> {
        let start = slot.window.after;
        if let Some(reason) = self.day_off(slot.day) {
            return Some(reason);
        }
        if start < moment.now {
            return Some(Reason::Begun);
        }
        if let Some(cutoff) = moment.past_same_day_cutoff
            && slot.day == moment.today
        {
            return Some(Reason::PastSameDayCutoff(cutoff));
        }
        if let Some(cutoff) = moment.past_previous_day_cutoff
            && slot.day == after(moment.today)
        {
            return Some(Reason::PastPreviousDayCutoff(cutoff));
        }
        if let Some(notice) = self.prior_notice
            && start < moment.earliest
        {
            return Some(Reason::TooLate(notice));
        }
        if start >= moment.too_early {
            return Some(Reason::TooEarly(self.interval));
        }
        let capacity = self.capacity?;
        (booked(slot.window) >= capacity).then_some(Reason::Full(capacity))
    }

    /// Why a window is not a slot of the pattern.
    fn absence(&self, slot: &Slot, zone: &TimeZone) -> Reason {
        if let Some(reason) = self.day_off(slot.day) {
            return reason;
        }
        let ordinary = self.slots(Pattern::Weekly, slot.day..after(slot.day), zone);
        if !ordinary.iter().any(|other| other.window == slot.window) {
            return Reason::NoSuchSlot;
        }
        if self.calendar.is_holiday(slot.day) {
            Reason::Holiday(slot.day)
        } else {
            Reason::Closed(slot.day)
        }
    }

    fn day_off(&self, day: Date) -> Option<Reason> {
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

    /// The days that differ from the weekly pattern by having no slot at all.
    pub(super) fn is_closed_on(&self, day: Date) -> bool {
        let any = |pattern| {
            let days = day..after(day);
            self.openings.iter().any(|openings| {
                !openings
                    .slots(pattern, days.clone(), self.slot_minutes())
                    .is_empty()
            })
        };
        any(Pattern::Weekly) && (self.day_off(day).is_some() || !any(Pattern::Actual))
    }

    pub(super) fn slot_minutes(&self) -> Option<i64> {
        self.slot_length
            .and_then(|length| length.minutes().try_into().ok())
    }
}

impl Moment {
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
            too_early: time_slot.interval.after(now),
            past_same_day_cutoff: time_slot.same_day_cutoff.filter(is_past),
            past_previous_day_cutoff: time_slot.previous_day_cutoff.filter(is_past),
        }
    }
}

fn after(day: Date) -> Date {
    day.tomorrow().unwrap_or(Date::MAX)
}

#[cfg(test)]
mod tests;
