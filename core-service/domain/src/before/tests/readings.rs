//! Texts of many forms with all that each may mean: none is read as a time that another of its readings
//! puts elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, DateTime, date};
use jiff::{ToSpan as _, Zoned};
use proptest::prelude::*;

use crate::before::{DateOrder, parse};

/// Friday 27 November 2026, 08:10 in Paris.
fn now() -> Zoned {
    "2026-11-27T08:10[Europe/Paris]".parse().unwrap()
}

/// What each text may mean; `None` is a range, or no meaning.
struct Readings(BTreeMap<String, BTreeSet<Option<DateTime>>>);

/// The day, the month and the year of a date.
const DATES: [(i8, i8, i16); 9] = [
    (5, 12, 2026),
    (10, 12, 2026),
    (12, 10, 2026),
    (12, 5, 2027),
    (5, 10, 2030),
    (10, 5, 2026),
    (26, 12, 2026),
    (30, 11, 2026),
    (13, 12, 2026),
];

const TIMES: [(i8, i8); 8] = [
    (5, 12),
    (10, 12),
    (12, 0),
    (12, 30),
    (20, 30),
    (17, 45),
    (9, 0),
    (0, 30),
];

/// Prepositions, and whether they are English.
const PREPOSITIONS: [(&str, bool); 13] = [
    ("", false),
    ("at ", true),
    ("by ", true),
    ("before ", true),
    ("à ", false),
    ("avant ", false),
    ("pour ", false),
    ("um ", false),
    ("bis ", false),
    ("a las ", false),
    ("antes de las ", false),
    ("alle ", false),
    ("entro le ", false),
];

/// A time of day after one of [`PREPOSITIONS`].
struct WrittenTime {
    preposition: &'static str,
    is_english: bool,
    hour: i8,
    minute: i8,
}

/// The words between the ends of a range.
const TO: [&str; 7] = [" bis ", " à ", " - ", " – ", "-", "–", " -"];

const DAY_WORDS: [(&str, i64); 6] = [
    ("heute", 0),
    ("today", 0),
    ("ce soir", 0),
    ("morgen", 1),
    ("demain", 1),
    ("tomorrow", 1),
];

/// The texts of a date, some with its year and some without. With slashes, a country decides the order.
fn dates(day: i8, month: i8, year: i16, order: DateOrder) -> [Vec<String>; 2] {
    let index = usize::try_from(month).unwrap() - 1;
    let names = [
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
        "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
        "ene feb mar abr may jun jul ago sep oct nov dic",
        "gen feb mar apr mag giu lug ago set ott nov dic",
    ]
    .map(|names| names.split(' ').nth(index).unwrap());
    let short = year - 2000;
    let mut with_year = vec![
        format!("{year}-{month:02}-{day:02}"),
        format!("{day}.{month}.{year}"),
        format!("{day}.{month}. {year}"),
        format!("{day:02}.{month:02}.{short}"),
        format!("{month}/{day} {year}"),
        format!("{day:02}-{month:02}-{short}"),
        format!("{month:02}-{day:02}-{short}"),
        format!("{short}-{month:02}-{day:02}"),
        format!("{month:02}/{day:02}/{short}"),
        format!("{short}/{month:02}/{day:02}"),
    ];
    let mut without_year = vec![
        format!("{day}.{month}."),
        format!("{day}.{month:02}"),
        format!("am {day}.{month}."),
        format!("{month}/{day}"),
    ];
    if order == DateOrder::DayFirst || day > 12 {
        with_year.push(format!("{day}/{month} {year}"));
        with_year.push(format!("{day:02}/{month:02}/{short}"));
        without_year.push(format!("{day}/{month}"));
    }
    for name in names {
        with_year.extend([
            format!("{day} {name} {year}"),
            format!("{day}. {name} {short}"),
            format!("{name} {day}, {year}"),
        ]);
        without_year.extend([
            format!("{day} {name}"),
            format!("{day}. {name}"),
            format!("{name} {day}"),
            format!("le {day} {name}"),
            format!("{day} de {name}"),
        ]);
    }
    [with_year, without_year]
}

/// The texts of a time of day, and their hours: English counts to twelve twice, and a number with
/// a unit may be a duration.
fn times(hour: i8, minute: i8, is_english: bool) -> Vec<(String, Vec<i8>)> {
    let mut hours = vec![hour];
    if is_english && (1..=12).contains(&hour) {
        hours.push((hour + 12) % 24);
    }
    let mut times = vec![
        (format!("{hour:02}:{minute:02}"), vec![hour]),
        (format!("{hour:02}{minute:02}"), vec![hour]),
        (format!("{hour}.{minute:02}"), vec![hour]),
        (format!("{hour}h{minute:02}"), hours.clone()),
    ];
    if (1..=12).contains(&hour) {
        times.extend([
            (format!("{hour}:{minute:02} am"), vec![hour % 12]),
            (format!("{hour}:{minute:02} pm"), vec![hour % 12 + 12]),
        ]);
    }
    if minute == 0 {
        times.extend([
            (format!("{hour}"), hours.clone()),
            (format!("{hour}h"), hours),
            (format!("{hour} Uhr"), vec![hour]),
            (format!("{hour} heures"), vec![hour]),
        ]);
    }
    times
}

/// The time of day that a day without its last dot may also be: `10.12`.
fn time_in(text: &str, on: Date) -> Option<DateTime> {
    let (hour, minute) = text.split_once('.')?;
    let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
    let is_both = (1..=23).contains(&hour) && (1..=12).contains(&minute);
    is_both.then(|| on.at(hour, minute, 0, 0))
}

impl Readings {
    fn of(order: DateOrder) -> Self {
        let mut readings = Self(BTreeMap::new());
        for written in all_times() {
            readings.add_time(&written);
        }
        let mut texts = Vec::new();
        for (day, month, year) in DATES {
            let [with_year, without_year] = dates(day, month, year, order);
            let date = date(year, month, day);
            // The year after a preposition that days may follow.
            for text in &without_year {
                for preposition in ["by ", "before ", "avant ", "pour ", "bis "] {
                    let midnight = date.at(0, 0, 0, 0);
                    readings.add(format!("{text} {preposition}{year}"), midnight);
                }
            }
            let without_year = without_year.into_iter().filter(|_| year == 2026);
            texts.extend(with_year.into_iter().map(|text| (text, date)));
            texts.extend(without_year.map(|text| (text, date)));
        }
        for (text, date) in &texts {
            readings.add_date(text, *date);
            readings.add_beside_day_words(text, *date);
        }
        readings.add_ranges(&texts);
        readings
    }

    fn add(&mut self, text: String, reading: impl Into<Option<DateTime>>) {
        self.0.entry(text).or_default().insert(reading.into());
    }

    fn add_time(&mut self, written: &WrittenTime) {
        let WrittenTime {
            preposition,
            is_english,
            hour,
            minute,
        } = *written;
        let today = now().date();
        for (time, hours) in times(hour, minute, is_english) {
            let text = format!("{preposition}{time}");
            for hour in hours {
                let at = today.at(hour, minute, 0, 0);
                self.add(text.clone(), at);
                // After minutes, earlier hours are a duration; others may be the end of a range.
                let has_minutes = time.contains([':', '.', 'm']) || time.len() == 4;
                for minus in [2, 6, 12, 18, 23] {
                    let is_duration = has_minutes && !time.contains('h') && minus <= hour;
                    let reading = is_duration.then(|| at - i64::from(minus).hours());
                    self.add(format!("{text} -{minus}h"), reading);
                    self.add(format!("{text} -{minus} h"), reading);
                    self.add(format!("{text} -{minus} heures"), reading);
                }
            }
        }
        // An `h` is that of a time after a preposition, except in English.
        for unit in ["hours", "h", "Stunden"] {
            let text = format!("{preposition}{hour} {unit}");
            let has_preposition = !preposition.is_empty();
            if unit == "h" || has_preposition {
                self.add(text.clone(), today.at(hour, 0, 0, 0));
            }
            if unit != "h" || ((is_english || !has_preposition) && !(13..24).contains(&hour)) {
                self.add(text, (now() + i64::from(hour).hours()).datetime());
            }
        }
    }

    /// A date alone, with an offset or hours, and with a time.
    fn add_date(&mut self, text: &str, date: Date) {
        self.add(text.to_owned(), date.at(0, 0, 0, 0));
        for end in [
            "-10:00",
            "-10",
            "+02:00",
            "-0300",
            "-18h",
            "-2 h",
            "-12 heures",
        ] {
            self.add(format!("{text} {end}"), None);
            self.add(format!("{text}{end}"), None);
        }
        let is_day_first = text.starts_with(|char: char| char.is_ascii_digit());
        for WrittenTime {
            preposition,
            is_english,
            hour,
            minute,
        } in all_times()
        {
            // English has no other `am` than that of a meridiem.
            if is_english && text.starts_with("am ") {
                continue;
            }
            let is_to = ["bis ", "à "].contains(&preposition);
            for (time, hours) in times(hour, minute, is_english) {
                for hour in hours {
                    let at = date.at(hour, minute, 0, 0);
                    self.add(format!("{text} {preposition}{time}"), at);
                    self.add(format!("{preposition}{time} {text}"), at);
                    if preposition == "um " && is_day_first {
                        self.add(format!("{time} am {text}"), at);
                    }
                }
                // From a day to another, or from a time of day to another.
                let is_range_of_days = is_to && time_in(&time, date).is_some();
                let is_range_of_times = is_to || preposition == "alle ";
                if is_range_of_days || (is_range_of_times && time_in(text, date).is_some()) {
                    self.add(format!("{text} {preposition}{time}"), None);
                }
                if is_to {
                    self.add(format!("{time} {preposition}{text}"), None);
                }
            }
        }
    }

    fn add_beside_day_words(&mut self, text: &str, date: Date) {
        for (word, days) in DAY_WORDS {
            let day = now().date() + days.days();
            for to in TO {
                // French `à` before a time of day is `at`.
                let at = time_in(text, day).filter(|_| to == " à ");
                self.add(format!("{word}{to}{text}"), at);
            }
            let numbers: Vec<i8> = text
                .split('.')
                .map_while(|part| part.parse().ok())
                .collect();
            if let [hour @ 0..=23, minute, second] = numbers[..] {
                self.add(format!("{word} {text}"), day.at(hour, minute, second, 0));
                self.add(format!("{word} {text}"), date.at(0, 0, 0, 0));
            }
        }
    }

    /// Two dates, each with some of the others. Beside a date, `10.12` is a time of day.
    fn add_ranges(&mut self, texts: &[(String, Date)]) {
        for (index, (first, first_date)) in texts.iter().enumerate() {
            for (second, second_date) in texts.iter().skip(index % 13).step_by(13) {
                let at = match (time_in(first, *second_date), time_in(second, *first_date)) {
                    (Some(at), None) | (None, Some(at)) => Some(at),
                    _ => None,
                };
                self.add(format!("{first} {second}"), at);
                for to in TO {
                    self.add(format!("{first}{to}{second}"), None);
                }
            }
        }
    }
}

/// Each time of day after each preposition.
fn all_times() -> impl Iterator<Item = WrittenTime> {
    PREPOSITIONS.iter().flat_map(|&(preposition, is_english)| {
        TIMES.iter().map(move |&(hour, minute)| WrittenTime {
            preposition,
            is_english,
            hour,
            minute,
        })
    })
}

/// Whether each text of the model in an order is refused or has one reading. Of the texts, every 29th.
fn check(order: DateOrder, offset: usize) -> Result<(), TestCaseError> {
    let now = now();
    let mut wrong = Vec::new();
    let mut read = 0;
    for (text, readings) in Readings::of(order).0.into_iter().skip(offset).step_by(29) {
        let Ok(instant) = parse(&text, &now, order) else {
            continue;
        };
        let actual = instant.to_zoned(now.time_zone().clone()).datetime();
        // The caller of `parse` refuses years before 2000: `5.12-0300`, `18:00 -2026-12-05`.
        if actual.year() >= 2000 {
            read += 1;
            if readings != BTreeSet::from([Some(actual)]) {
                wrong.push(format!("{text:?} is read as {actual}, may be {readings:?}"));
            }
        }
    }
    prop_assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    prop_assert!(read > 1000, "{read}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1))]

    #[test]
    fn no_text_is_read_as_a_time_that_another_of_its_readings_puts_elsewhere(offset in 0..29_usize) {
        check(DateOrder::DayFirst, offset)?;
    }

    #[test]
    fn nor_is_one_in_a_country_that_writes_the_month_first(offset in 0..29_usize) {
        check(DateOrder::MonthFirst, offset)?;
    }
}
