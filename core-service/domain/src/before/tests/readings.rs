//! Texts of many forms with all that each may mean: none is read as a time that another of its readings
//! puts elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{DateTime, date};
use jiff::{ToSpan as _, Zoned};

use crate::before::{DateOrder, parse};

/// Friday 27 November 2026, 08:10 in Paris.
fn now() -> Zoned {
    "2026-11-27T08:10[Europe/Paris]".parse().unwrap()
}

/// What each text may mean.
type Readings = BTreeMap<String, BTreeSet<DateTime>>;

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

/// The texts of a date, some with its year and some without.
fn dates(day: i8, month: i8, year: i16) -> [Vec<String>; 2] {
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
        format!("{day}/{month} {year}"),
    ];
    for separator in ["-", "/"] {
        with_year.extend([
            format!("{day:02}{separator}{month:02}{separator}{short}"),
            format!("{month:02}{separator}{day:02}{separator}{short}"),
            format!("{short}{separator}{month:02}{separator}{day:02}"),
        ]);
    }
    let mut without_year = vec![
        format!("{day}.{month}."),
        format!("{day}.{month:02}"),
        format!("am {day}.{month}."),
        format!("{day}/{month}"),
        format!("{month}/{day}"),
    ];
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

fn readings() -> Readings {
    let mut readings = Readings::new();
    let mut add = |text: String, reading| readings.entry(text).or_default().insert(reading);
    let at = |day: jiff::civil::Date, hour, minute| day.at(hour, minute, 0, 0);
    let today = now().date();
    let all_times = || {
        PREPOSITIONS
            .iter()
            .flat_map(|preposition| TIMES.iter().map(move |time| (*preposition, *time)))
    };
    for ((preposition, is_english), (hour, minute)) in all_times() {
        for (time, hours) in times(hour, minute, is_english) {
            for hour in hours {
                add(format!("{preposition}{time}"), at(today, hour, minute));
            }
        }
        // An `h` is that of a time after a preposition, except in English.
        for unit in ["hours", "h", "Stunden"] {
            let text = format!("{preposition}{hour} {unit}");
            let has_preposition = !preposition.is_empty();
            if unit == "h" || has_preposition {
                add(text.clone(), at(today, hour, 0));
            }
            if unit != "h" || ((is_english || !has_preposition) && !(13..24).contains(&hour)) {
                add(text, (now() + i64::from(hour).hours()).datetime());
            }
        }
    }
    for (day, month, year) in DATES {
        let [with_year, without_year] = dates(day, month, year);
        let is_of_this_year = year == 2026;
        let date = date(year, month, day);
        let texts = with_year
            .iter()
            .chain(without_year.iter().filter(|_| is_of_this_year));
        for text in texts {
            add(text.clone(), at(date, 0, 0));
            let is_day_first = text.starts_with(|char: char| char.is_ascii_digit());
            for ((preposition, is_english), (hour, minute)) in all_times() {
                // English has no other `am` than that of a meridiem.
                if is_english && text.starts_with("am ") {
                    continue;
                }
                for (time, hours) in times(hour, minute, is_english) {
                    for hour in hours {
                        let at = at(date, hour, minute);
                        add(format!("{text} {preposition}{time}"), at);
                        add(format!("{preposition}{time} {text}"), at);
                        if preposition == "um " && is_day_first {
                            add(format!("{time} am {text}"), at);
                        }
                    }
                }
            }
        }
        // The year after a preposition that days may follow.
        for text in &without_year {
            for preposition in ["by ", "before ", "avant ", "pour ", "bis "] {
                add(format!("{text} {preposition}{year}"), at(date, 0, 0));
            }
        }
    }
    readings
}

/// Of the texts of a time and a date, every seventh.
#[test]
fn no_text_is_read_as_a_time_that_another_of_its_readings_puts_elsewhere() {
    let now = now();
    let mut wrong = Vec::new();
    let mut read = 0;
    for (text, readings) in readings().into_iter().step_by(7) {
        if let Ok(instant) = parse(&text, &now, DateOrder::DayFirst) {
            read += 1;
            let actual = instant.to_zoned(now.time_zone().clone()).datetime();
            if readings != BTreeSet::from([actual]) {
                wrong.push(format!("{text:?} is read as {actual}, may be {readings:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(read > 1000, "{read}");
}
