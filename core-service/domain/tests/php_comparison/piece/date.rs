//! Random dates, some with a time of day.

use super::{MONTHS, Piece};
use crate::random::Random;

pub(super) fn date(random: &mut Random) -> Piece {
    let year = random.between(2019, 2037);
    let (month, day) = if random.chance(25) {
        [
            (3, 29),
            (10, 25),
            (3, 8),
            (11, 1),
            (4, 5),
            (10, 4),
            (2, 29),
            (12, 31),
        ][usize::try_from(random.below(8)).expect("the index is below 8")]
    } else if random.chance(4) {
        (random.below(13), random.below(32))
    } else {
        (random.between(1, 12), random.between(1, 28))
    };
    let name = random.pick(&MONTHS);
    let short = random.pick(&MONTHS[12..24]);
    let short_year = year % 100;
    let suffix = random.pick(&["", "", "st", "nd", "rd", "th"]);
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    let time = format!("{hour:02}:{minute:02}:{second:02}");
    let date = match random.below(34) {
        0..=2 => format!("{year}-{month:02}-{day:02}"),
        3 => format!("{year}/{month}/{day}"),
        4 => format!("{year}/{month:02}/{day:02}"),
        5 => format!("{month}/{day}/{year}"),
        6 => format!("{month:02}/{day:02}"),
        7 => format!("{month}/{day}/{short_year:02}"),
        // After a day and a month, `25.11.2026` is parsed as the year 25 and the time 11.20.
        8 => {
            let date = format!("{day:02}.{month:02}.{year}");
            return Piece::time(date, format!("{month:02}:{}", year / 100));
        }
        9 => format!("{day}-{month}-{year}"),
        // All three numbers may be parsed as a time, or the last two, if they are small enough.
        10 => {
            let times = vec![
                format!("{day}:{month}:{short_year:02}"),
                format!("{month}:{short_year:02}"),
            ];
            return Piece {
                times,
                ..Piece::new(format!("{day}.{month}.{short_year:02}"))
            };
        }
        11 => format!("{day}{suffix} {name} {year}"),
        12 => format!("{day} {name}"),
        13 => format!("{name} {day}{suffix}"),
        14 => format!("{name} {day}{suffix}, {year}"),
        15 => format!("{day}-{short}-{year}"),
        16 => format!("{short}-{day:02}-{year}"),
        17 => format!("{year}-{short}-{day:02}"),
        // After a year, as in `2025 nov 2026`, the month is of that year, and `2026` is a time.
        18 => return Piece::time(format!("{name} {year}"), year.to_string()),
        19 => format!("{year} {name}"),
        20 => format!("{year}-{month}"),
        // After a month, as in `nov 20261125`, the last four digits are a time.
        21 => {
            return Piece::time(
                format!("{year}{month:02}{day:02}"),
                format!("{month:02}{day:02}"),
            );
        }
        22 => format!("{year}-{:03}", random.between(1, 366)),
        23 => format!("{year}.{:03}", random.between(1, 366)),
        24 => format!(
            "{year}-W{:02}-{}",
            random.between(1, 53),
            random.between(0, 7)
        ),
        25 => format!("{year}W{:02}", random.between(1, 53)),
        26 => format!(
            "{year}W{:02}{}",
            random.between(1, 53),
            random.between(1, 7)
        ),
        27 => format!("@{}", random.below(2_000_000_000)),
        28 => format!("{short_year:02}-{month:02}-{day:02}"),
        29 => return Piece::time(year.to_string(), year.to_string()),
        30 => {
            let time = format!("{time}.{:03}", random.below(1000));
            return Piece::time(format!("{year}-{month:02}-{day:02}T{time}"), time);
        }
        31 => {
            let date = format!("{year}{month:02}{day:02}T{hour:02}{minute:02}{second:02}");
            return Piece::time(date, time);
        }
        32 => return Piece::time(format!("{day}/{short}/{year}:{time} +0200"), time),
        _ => return Piece::time(format!("{year}:{month:02}:{day:02} {time}"), time),
    };
    Piece::new(date)
}
