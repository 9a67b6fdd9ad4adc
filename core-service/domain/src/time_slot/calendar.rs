//! A country's public holidays and weekend.

use chrono::NaiveDate;
use icu_calendar::week::{WeekInformation, WeekPreferences};
use icu_locale_core::Locale;
use jiff::civil::{Date, Weekday};
use opening_hours::{ContextHolidays, localization::Country};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calendar {
    holidays: ContextHolidays,
    weekend: Vec<Weekday>,
}

impl Calendar {
    /// Looks up an ISO 3166-1 alpha-2 code. An unknown country has no holidays and a weekend of
    /// Saturday and Sunday.
    pub(super) fn of(country: &str) -> Self {
        let holidays = country
            .parse()
            .map_or_else(|_| ContextHolidays::default(), Country::holidays);
        Self {
            holidays,
            weekend: weekend(country),
        }
    }

    pub(super) fn has_holidays(&self) -> bool {
        self.holidays.get_public().count() > 0
    }

    pub(super) fn is_holiday(&self, date: Date) -> bool {
        chrono_date(date).is_some_and(|date| self.holidays.get_public().contains(date))
    }

    pub(super) fn is_weekend(&self, day: Weekday) -> bool {
        self.weekend.contains(&day)
    }

    pub(super) fn holidays(&self) -> ContextHolidays {
        self.holidays.clone()
    }
}

/// Converts a date to the type that the `opening_hours` crate uses.
pub(super) fn chrono_date(date: Date) -> Option<NaiveDate> {
    let unsigned = |part: i8| u32::try_from(part).ok();
    NaiveDate::from_ymd_opt(
        date.year().into(),
        unsigned(date.month())?,
        unsigned(date.day())?,
    )
}

fn weekend(country: &str) -> Vec<Weekday> {
    let mut locale = Locale::UNKNOWN;
    locale.id.region = country.parse().ok();
    let Ok(week) = WeekInformation::try_new(WeekPreferences::from(&locale)) else {
        return vec![Weekday::Saturday, Weekday::Sunday];
    };
    // Both count from Monday, which is 1.
    week.weekend()
        .filter_map(|day| Weekday::from_monday_one_offset(day as i8).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn holidays_and_weekends_depend_on_the_country() {
        let france = Calendar::of("FR");
        assert!(france.has_holidays());
        assert!(france.is_holiday(date(2026, 7, 14)));
        assert!(!france.is_holiday(date(2026, 7, 4)));
        assert_eq!(france.weekend, [Weekday::Saturday, Weekday::Sunday]);

        let egypt = Calendar::of("EG");
        assert!(egypt.is_weekend(Weekday::Friday) && egypt.is_weekend(Weekday::Saturday));
        assert!(!egypt.is_weekend(Weekday::Sunday));
    }

    #[test]
    fn an_unknown_country_has_the_default_weekend_and_no_holidays() {
        for country in ["", "XX", "fr-FR", "\u{0}\u{0}"] {
            let calendar = Calendar::of(country);
            assert!(!calendar.has_holidays(), "{country:?}");
            assert_eq!(calendar.weekend, [Weekday::Saturday, Weekday::Sunday]);
        }
    }
}
