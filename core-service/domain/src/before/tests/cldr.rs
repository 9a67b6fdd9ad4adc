//! Dates and times as CLDR writes them in our five languages, and numbers with several readings.

use icu_calendar::{Date, Gregorian};
use icu_datetime::fieldsets::enums::{
    CompositeFieldSet, DateAndTimeFieldSet, DateFieldSet, ZoneFieldSet,
};
use icu_datetime::fieldsets::{YMD, YMDE, zone::SpecificLong, zone::SpecificShort};
use icu_datetime::input::{Time, TimeZone, UtcOffset, ZonedDateTime};
use icu_datetime::{FixedCalendarDateTimeFormatter, options::Length};
use icu_locale_core::Locale;
use jiff::civil;
use jiff::{ToSpan as _, Zoned};

use super::two_readings::{assert_read, assert_refused};
use crate::before::{DateOrder, parse};

const LOCALES: [&str; 11] = [
    "en", "en-GB", "fr", "fr-CA", "fr-CH", "de", "de-AT", "es", "es-MX", "it", "it-CH",
];

/// Sunday 29 November 2026.
fn now() -> Zoned {
    "2026-11-29T10:00[Europe/Paris]".parse().unwrap()
}

type Formatter = FixedCalendarDateTimeFormatter<Gregorian, CompositeFieldSet>;

/// A form of CLDR: the formatter, and what of the time its text has.
struct Form {
    name: String,
    formatter: Formatter,
    precision: Precision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    Day,
    Minute,
    Second,
}

/// The short, medium and long dates of a locale, without and with their weekdays, alone and with each
/// time.
fn forms(locale: &str) -> Vec<Form> {
    let short_to_long = [Length::Short, Length::Medium, Length::Long];
    let dates = short_to_long.map(|length| {
        let fields = YMD::for_length(length);
        (
            format!("{length:?}"),
            DateFieldSet::YMD(fields),
            DateAndTimeFieldSet::YMDT(fields.with_time_hm()),
            DateAndTimeFieldSet::YMDT(fields.with_time_hms()),
        )
    });
    let dates_with_weekdays = short_to_long.map(|length| {
        let fields = YMDE::for_length(length);
        (
            format!("{length:?} after its weekday"),
            DateFieldSet::YMDE(fields),
            DateAndTimeFieldSet::YMDET(fields.with_time_hm()),
            DateAndTimeFieldSet::YMDET(fields.with_time_hms()),
        )
    });
    let locale_id: Locale = locale.parse().unwrap();
    let mut forms = Vec::new();
    for (length, date, minutes, seconds) in dates.into_iter().chain(dates_with_weekdays) {
        for (time, fields, precision) in [
            ("alone", CompositeFieldSet::Date(date), Precision::Day),
            (
                "with a short time",
                CompositeFieldSet::DateTime(minutes),
                Precision::Minute,
            ),
            (
                "with a medium time",
                CompositeFieldSet::DateTime(seconds),
                Precision::Second,
            ),
            (
                "with a long time",
                CompositeFieldSet::DateTimeZone(
                    seconds.with_zone(ZoneFieldSet::SpecificShort(SpecificShort)),
                ),
                Precision::Second,
            ),
            (
                "with a full time",
                CompositeFieldSet::DateTimeZone(
                    seconds.with_zone(ZoneFieldSet::SpecificLong(SpecificLong)),
                ),
                Precision::Second,
            ),
        ] {
            forms.push(Form {
                name: format!("{locale} {length} {time}"),
                formatter: Formatter::try_new((&locale_id).into(), fields).unwrap(),
                precision,
            });
        }
    }
    forms
}

impl Form {
    fn text(&self, at: &Zoned) -> String {
        let part = |part: i8| u8::try_from(part).unwrap();
        let date =
            Date::try_new_gregorian(at.year().into(), part(at.month()), part(at.day())).unwrap();
        let time = Time::try_new(part(at.hour()), part(at.minute()), part(at.second()), 0).unwrap();
        let offset = UtcOffset::try_from_seconds(at.offset().seconds()).unwrap();
        let input = ZonedDateTime {
            date,
            time,
            zone: TimeZone::from_iana_id("Europe/Paris")
                .with_offset(Some(offset))
                .at_date_time(icu_datetime::input::DateTime { date, time }),
        };
        self.formatter.format(&input).to_string()
    }

    /// What the text means, to the precision of the form.
    fn instant(&self, at: &Zoned) -> jiff::Timestamp {
        let rounded = match self.precision {
            Precision::Day => at.start_of_day().unwrap(),
            Precision::Minute => at.with().second(0).build().unwrap(),
            Precision::Second => at.clone(),
        };
        rounded.timestamp()
    }
}

/// Whether texts of a form may be refused: short dates have several readings, German ones only
/// without a weekday and a time; the names of some time zones and the seconds of French Canada are not
/// read.
fn may_be_refused(form: &str) -> bool {
    let is_short = form.contains("Short");
    (is_short && (!form.starts_with("de") || form.ends_with("Short alone")))
        || form.ends_with("full time")
        || (form.ends_with("long time") && form.starts_with(['f', 'd']))
        || (form.ends_with("medium time") && form.starts_with("fr-CA"))
}

/// Each form has every day, those of regions every fifth day, another one than the form before it; at a
/// time that differs from day to day.
#[test]
fn every_date_of_two_years_is_read_right_or_refused_in_the_forms_of_cldr() {
    let days = (0..731_i64).map(|day| {
        let local = civil::date(2026, 11, 30)
            .at(0, 0, 0, 0)
            .checked_add(day.days().seconds(day * 4_271 % 86_400))
            .unwrap();
        local.in_tz("Europe/Paris").unwrap()
    });
    let mut wrong = Vec::new();
    for (index, form) in LOCALES.into_iter().flat_map(forms).enumerate() {
        let order = if form.name.starts_with("en ") {
            DateOrder::MonthFirst
        } else {
            DateOrder::DayFirst
        };
        let locale = form.name.split(' ').next();
        let is_regional = locale.is_some_and(|locale| locale.contains('-'));
        let step = if is_regional { 5 } else { 1 };
        for at in days.clone().skip(index % step).step_by(step) {
            let text = form.text(&at);
            match parse(&text, &now(), order) {
                Ok(instant) if instant == form.instant(&at) => {}
                Ok(instant) => wrong.push(format!("{}: {text:?} {instant}", form.name)),
                Err(_) if may_be_refused(&form.name) => {}
                Err(error) => wrong.push(format!("{}: {text:?} {error}", form.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_months_and_weekdays_are_those_of_cldr_with_and_without_dots_and_accents() {
    assert_read(&[
        ("7 déc. 2026 08:26", "2026-12-07 08:26"),
        ("lun. 7 déc. 2026 08:26", "2026-12-07 08:26"),
        ("3 janv. 2027", "2027-01-03 00:00"),
        ("3 juil 2027", "2027-07-03 00:00"),
        ("3 févr. 2027 10:00", "2027-02-03 10:00"),
        ("dim 6 déc à 9h", "2026-12-06 09:00"),
        ("sam. 5 déc. 18h", "2026-12-05 18:00"),
        ("12 avr. 2027", "2027-04-12 00:00"),
        ("15 aout 2027", "2027-08-15 00:00"),
        ("jeu 3 déc 18:00", "2026-12-03 18:00"),
        ("7 dec. 2026 08:26", "2026-12-07 08:26"),
        ("7. Dez. 2026, 08:26", "2026-12-07 08:26"),
        ("12. Okt. 2027", "2027-10-12 00:00"),
        ("Sa., 5. Dez. 2026", "2026-12-05 00:00"),
        ("3 Mär 2027", "2027-03-03 00:00"),
        ("Do 18 Uhr", "2026-12-03 18:00"),
        ("Mi., 2. Dez.", "2026-12-02 00:00"),
        ("Di 8. Dez. 18 Uhr", "2026-12-08 18:00"),
        ("Di 18 Uhr", "2026-12-01 18:00"),
        ("bis Di, 18:00", "2026-12-01 18:00"),
        ("So 10:00", "2026-11-29 10:00"),
        ("Fr. 18h", "2026-12-04 18:00"),
        ("7 dic 2026 8:26", "2026-12-07 08:26"),
        ("3 ene 2027", "2027-01-03 00:00"),
        ("vie 4 dic 18:00", "2026-12-04 18:00"),
        ("sáb 5 dic", "2026-12-05 00:00"),
        ("sab 5 dic", "2026-12-05 00:00"),
        ("mié, 2 dic", "2026-12-02 00:00"),
        ("10 ago 2027", "2027-08-10 00:00"),
        ("3 abr 2027", "2027-04-03 00:00"),
        ("7 dic 2026, 08:26", "2026-12-07 08:26"),
        ("3 gen 2027", "2027-01-03 00:00"),
        ("gio 3 dic 18:00", "2026-12-03 18:00"),
        ("15 mag 2027", "2027-05-15 00:00"),
        ("1 lug 2027", "2027-07-01 00:00"),
        ("8 set 2027", "2027-09-08 00:00"),
        ("30 ott 2027", "2027-10-30 00:00"),
        ("2 giu 2027", "2027-06-02 00:00"),
        ("ven alle 18", "2026-12-04 18:00"),
        ("2 days ago", "2026-11-27 10:00"),
        ("di sabato alle 9", "2026-12-05 09:00"),
        ("alle 9 di questa mattina", "2026-11-29 09:00"),
        ("alle 21 di stasera", "2026-11-29 21:00"),
        ("Di früh um 9 Uhr", "2026-12-01 09:00"),
        ("sabato di mattina alle 9", "2026-12-05 09:00"),
        ("8 Jänner 2027", "2027-01-08 00:00"),
    ]);
    assert_refused(&[
        "Di 9. Dez. 18 Uhr",
        "ven 5 déc",
        "10 ago",
        "di 18",
        "mer 8 dic",
    ]);
}
