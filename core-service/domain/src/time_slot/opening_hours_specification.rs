//! The time slots in the form of schema.org's `OpeningHoursSpecification`: the regular week, and
//! the dates on which the store is closed.

use std::{collections::BTreeMap, ops::RangeInclusive};

use jiff::{
    Span, Zoned,
    civil::{Date, Time, Weekday, date},
};

use super::{TimeSlot, opening_hours_entry::Hours};

/// One row: open from `opens` to `closes` on these weekdays; past midnight if `closes` is not
/// later than `opens`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningHoursSpecification {
    pub opens: Time,
    pub closes: Time,
    /// Sorted from Monday. Empty in a row of closed dates, so that clients that read only weekdays
    /// skip it.
    pub days: Vec<Weekday>,
    /// Closed on these dates, with `opens` and `closes` both 00:00 (schema.org's form); absent in
    /// a row of the regular week.
    pub closed: Option<RangeInclusive<Date>>,
}

impl TimeSlot {
    /// A row for each slot of the regular week, sorted, then a row for each run of closed days
    /// between `now` and the end of the interval. Never empty.
    pub fn opening_hours_specification(&self, now: &Zoned) -> Vec<OpeningHoursSpecification> {
        let mut rows = self.regular_week();
        let last = self.interval.after(now).to_zoned(now.time_zone().clone());
        rows.extend(self.closed_rows(now.date(), last.date()));
        rows
    }

    pub(super) fn regular_week(&self) -> Vec<OpeningHoursSpecification> {
        let monday = date(2001, 1, 1);
        let mut days_by_hours: BTreeMap<(Time, Time), Vec<Weekday>> = BTreeMap::new();
        for entry in &self.opening_hours {
            let week = monday..monday.saturating_add(Span::new().weeks(1));
            for slot in entry.slots(Hours::RegularWeek, week, self.slot_minutes) {
                let day = slot.start.weekday();
                if self.working_days_only && self.calendar.is_weekend(day) {
                    continue;
                }
                let opens = slot.start.time();
                let mut closes = slot.end.time();
                // Equal times would mean closed.
                if closes == opens {
                    closes = closes.wrapping_sub(Span::new().minutes(1));
                }
                let days = days_by_hours.entry((opens, closes)).or_default();
                if !days.contains(&day) {
                    days.push(day);
                }
            }
        }
        days_by_hours
            .into_iter()
            .map(|((opens, closes), mut days)| {
                days.sort_by_key(|day| day.to_monday_one_offset());
                OpeningHoursSpecification {
                    opens,
                    closes,
                    days,
                    closed: None,
                }
            })
            .collect()
    }

    fn closed_rows(&self, first: Date, last: Date) -> Vec<OpeningHoursSpecification> {
        let mut runs: Vec<RangeInclusive<Date>> = Vec::new();
        for day in first
            .series(Span::new().days(1))
            .take_while(|day| *day <= last)
            .filter(|day| self.is_closed_on(*day))
        {
            // The rows of the regular week already exclude weekends.
            if self.working_days_only && self.calendar.is_weekend(day.weekday()) {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end().tomorrow().is_ok_and(|next| next == day) => {
                    *run = *run.start()..=day;
                }
                _ => runs.push(day..=day),
            }
        }
        runs.into_iter()
            .map(|dates| OpeningHoursSpecification {
                opens: Time::midnight(),
                closes: Time::midnight(),
                days: Vec::new(),
                closed: Some(dates),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(definition: &str, now: &str) -> Vec<String> {
        let now = now.parse::<Zoned>().unwrap();
        TimeSlot::parse(definition, "FR")
            .unwrap()
            .opening_hours_specification(&now)
            .iter()
            .map(|row| {
                let days: Vec<_> = row.days.iter().map(|day| format!("{day:?}")).collect();
                let closed = row
                    .closed
                    .as_ref()
                    .map(|dates| format!("{}/{}", dates.start(), dates.end()));
                format!(
                    "{}-{} {}{}",
                    row.opens.strftime("%H:%M"),
                    row.closes.strftime("%H:%M"),
                    days.join(","),
                    closed.unwrap_or_default()
                )
            })
            .collect()
    }

    #[test]
    fn the_regular_week_has_a_row_for_each_slot() {
        let definition = r#"
            name = "Tour"
            opening_hours = ["Mo-Fr 12:00-14:00; We off", "Sa 12:00-13:00", "Fr 22:00-02:00", "Su 00:00-24:00"]
            interval = "2 days"
        "#;
        assert_eq!(
            rows(definition, "2026-06-01T09:00[Europe/Paris]"),
            [
                "00:00-23:59 Sunday",
                "12:00-13:00 Saturday",
                "12:00-14:00 Monday,Tuesday,Thursday,Friday",
                "22:00-02:00 Friday",
            ]
        );
        let hourly = r#"
            name = "Tour"
            opening_hours = ["Sa-Mo 22:00-24:00"]
            interval = "2 days"
            slot_length = "1 hour"
            working_days_only = true
        "#;
        assert_eq!(
            rows(hourly, "2026-06-01T09:00[Europe/Paris]"),
            ["22:00-23:00 Monday", "23:00-00:00 Monday"]
        );
    }

    #[test]
    fn closed_days_have_a_row_with_their_dates() {
        let definition = r#"
            name = "Tour"
            opening_hours = ["Mo-Sa 12:00-14:00; PH off"]
            interval = "2 weeks"
            closed = ["2026-12-28", "2026-12-29/2026-12-30", "2027-03-01"]
        "#;
        assert_eq!(
            rows(definition, "2026-12-21T09:00[Europe/Paris]"),
            [
                "12:00-14:00 Monday,Tuesday,Wednesday,Thursday,Friday,Saturday",
                "00:00-00:00 2026-12-25/2026-12-25",
                "00:00-00:00 2026-12-28/2026-12-30",
                "00:00-00:00 2027-01-01/2027-01-01",
            ]
        );
        let working_days = r#"
            name = "Tour"
            opening_hours = ["Mo-Fr 12:00-14:00"]
            interval = "2 weeks"
            working_days_only = true
            closed = ["2026-12-26/2026-12-28"]
        "#;
        assert_eq!(
            rows(working_days, "2026-12-26T09:00[Europe/Paris]"),
            [
                "12:00-14:00 Monday,Tuesday,Wednesday,Thursday,Friday",
                "00:00-00:00 2026-12-28/2026-12-28",
                "00:00-00:00 2027-01-01/2027-01-01",
            ]
        );
    }
}
