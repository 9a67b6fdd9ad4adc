//! The names of months and weekdays in CLDR, in full and abbreviated, beside numbers and alone.

use super::super::word_tables::{MONTHS, WEEKDAYS};
use super::dictionary::fold;
use icu_calendar::{Date, Gregorian};
use icu_datetime::FixedCalendarDateTimeFormatter;
use icu_datetime::fieldsets::enums::{
    CalendarPeriodFieldSet, CompositeDateTimeFieldSet as Fields, DateFieldSet,
};
use icu_datetime::fieldsets::{E, M, MD};
use icu_datetime::input::{DateTime, Time};
use icu_locale_core::Locale;

/// The locales whose names differ from those of the strict grammar.
const LOCALES: [&str; 6] = ["fr", "fr-CA", "de", "de-AT", "es", "it"];

/// Each name as `fold` returns it, without a dot, and its English name.
pub(super) fn all() -> Vec<(String, &'static str)> {
    let months = [M::long(), M::medium()].map(CalendarPeriodFieldSet::M);
    let months_beside_days = [MD::long(), MD::medium()].map(DateFieldSet::MD);
    let months = months
        .map(Fields::CalendarPeriod)
        .into_iter()
        .chain(months_beside_days.map(Fields::Date));
    let weekdays = [E::long(), E::short()]
        .map(DateFieldSet::E)
        .map(Fields::Date);
    let mut names = Vec::new();
    for locale in LOCALES {
        let locale = locale.parse().unwrap_or(Locale::UNKNOWN);
        for fields in months.clone() {
            names.extend(of_table(&locale, fields, MONTHS, |month| (month, 7)));
        }
        for fields in weekdays {
            // 1 November 2026 is a Sunday.
            names.extend(of_table(&locale, fields, WEEKDAYS, |weekday| (11, weekday)));
        }
    }
    names
}

/// The names of a table's rows, on the dates of 2026 that `date` returns for row 1 and the next.
fn of_table(
    locale: &Locale,
    fields: Fields,
    table: &[&'static str],
    date: impl Fn(u8) -> (u8, u8),
) -> Vec<(String, &'static str)> {
    let Ok(formatter) = FixedCalendarDateTimeFormatter::try_new(locale.into(), fields) else {
        return Vec::new();
    };
    let name = |(row, words): (u8, &&'static str)| {
        let (month, day) = date(row);
        let date = Date::<Gregorian>::try_new_gregorian(2026, month, day).ok()?;
        let time = Time::start_of_day();
        let text = formatter.format(&DateTime { date, time }).to_string();
        // The last word: `7. Dez.`, `7 de diciembre`.
        let mut words_of_text = text.split(|char: char| !char.is_alphabetic());
        let name = words_of_text.rfind(|word| !word.is_empty())?;
        Some((fold(name).into_owned(), words.split(' ').next()?))
    };
    (1..).zip(table).filter_map(name).collect()
}
