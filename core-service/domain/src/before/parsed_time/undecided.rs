//! Numbers and words with several readings: the rest of the text decides, or the text is rejected.

use super::super::error::Error;
use super::super::instant::date_of;
use super::super::lexer::{Cursor, Token};
use super::super::numbers::{NumericDate, Readings};
use super::super::relative::DayCount;
use super::{ParsedTime, TimeOfDay};

/// Articles before a date, not before a time of day.
const DATE_ARTICLES: [&str; 6] = ["am", "den", "dem", "le", "il", "el"];

impl<'a> ParsedTime<'a> {
    pub(super) fn set_numbers(&mut self, readings: Readings<'a>) -> Result<(), Error> {
        let token = readings.token;
        if readings.time.is_some() {
            self.last_short_time = Some(token);
        }
        // The token may be only the beginning of more numbers.
        if token.is_before(b".0123456789") {
            return Err(self.context.unrecognized(token.start));
        }
        match (&*readings.dates, readings.time) {
            ([], None) => Err(self.context.unrecognized(token.start)),
            ([], Some(time)) => self.set_time(time, &token),
            ([date], None) if readings.is_year_first => Err(self.context.ambiguous(
                token.start..token.end(),
                "a date with a year of two digits first",
                vec![date.text(self.context.today)],
            )),
            ([date], None) => self.set_date(*date, &token),
            _ if self.undecided.is_some() => Err(self.context.duplicate("date", token.start)),
            _ => {
                self.undecided = Some(readings);
                Ok(())
            }
        }
    }

    /// Beside a date or a word for a day, two numbers are a time; beside a time or their weekday, numbers
    /// are a date. `zone` is the position of the time zone.
    pub(super) fn decide_numbers(&mut self, zone: Option<usize>) -> Result<(), Error> {
        let Some(Readings {
            token,
            mut dates,
            mut time,
            ..
        }) = self.undecided.take()
        else {
            return Ok(());
        };
        let today = self.context.today;
        self.check_range(&token)?;
        let has_year = dates.iter().any(|date| date.year.is_some());
        if has_year && self.has_date() {
            return self.mark_date(&token);
        }
        let is_beside_word = time.is_some() && self.days.word.is_some();
        if !has_year && (self.names_day() || is_beside_word) {
            dates.clear();
        }
        // `10.12 bis 18:00` may start at 10:12.
        let starts_range = |time| token.start < time && self.context.is_range(token.start, time);
        if self.has_time()
            && (!self.time_at.is_some_and(starts_range)
                || self.context.is_after(token.start, &DATE_ARTICLES))
        {
            time = None;
        }
        // `Montag 30.11.26` and `30.11.26, 18:00`: beside its weekday or a time, the day is first.
        if let [day_first, _] = &*dates
            && token.text.contains('.')
        {
            let is_decided = match self.days.weekday {
                Some((weekday, _)) => day_first.weekday(today) == Some(weekday),
                None => self.has_time(),
            };
            if is_decided {
                dates.truncate(1);
            }
        }
        // Not between two dates: a mistake in the weekday would decide, too.
        if let (Some((weekday, _)), [date]) = (self.days.weekday, &*dates)
            && date.weekday(today) == Some(weekday)
        {
            time = None;
        }
        match (&*dates, time) {
            ([], None) => Err(self.context.duplicate("date", token.start)),
            ([], Some(time)) => self.set_time(time, &token),
            ([date], None) => match zone.filter(|zone| is_offset_after(*zone, &token)) {
                // `freitag 4.12 +02:00`
                Some(zone) => Err(self.context.unrecognized(zone)),
                None => self.set_date(*date, &token),
            },
            _ => {
                let readings = match time {
                    Some(_) => "a time of day or a date",
                    None => "ambiguous",
                };
                let time = time.map(|time| match time.second {
                    0 => format!("{:02}:{:02}", time.hour, time.minute),
                    second => format!("{:02}:{:02}:{second:02}", time.hour, time.minute),
                });
                let days = dates.iter().map(|date| date.text(today));
                let write = time.into_iter().chain(days).collect();
                let range = token.start..token.end();
                Err(self.context.ambiguous(range, readings, write))
            }
        }
    }

    fn set_date(&mut self, date: NumericDate, token: &Token<'_>) -> Result<(), Error> {
        self.check_range(token)?;
        self.mark_date(token)?;
        self.year = date.year.or(self.year);
        (self.month, self.day) = (Some(date.month), Some(date.day));
        self.has_day = true;
        Ok(())
    }

    /// Four digits are a year after a month; elsewhere they are a time if they can be no year.
    pub(super) fn set_four_digits(&mut self, token: &Token<'a>) -> Result<(), Error> {
        let number = Cursor::new(token.text).number(4).unwrap_or_default();
        let (hour, minute) = (number / 100, number % 100);
        let time = TimeOfDay::at(hour, minute);
        let is_time = hour <= 24 && minute < 60;
        let today = i64::from(self.context.today.year());
        // `24 dec 2027 2015` is at 20:15, but `24 dec 2026 2027` has rather two years.
        let is_near = (today - 1..=today + 3).contains(&number);
        let may_be_year = !token.text.starts_with(['t', 'T'])
            && (1960..=2099).contains(&number)
            && (self.year.is_none() || is_near);
        if may_be_year && self.year.is_none() && self.month.is_some() {
            self.year = Some(number);
            self.bare_year = Some(token.start);
            return Ok(());
        }
        // `2026.12.01` is neither.
        if (may_be_year && token.is_before(b".:/-")) || !is_time {
            return Err(self.context.unrecognized(token.start));
        }
        if may_be_year {
            let write = [format!("{hour:02}:{minute:02}"), format!("{number}-11-25")];
            let range = token.start..token.end();
            let readings = "a time of day or a year without a month";
            return Err(self.context.ambiguous(range, readings, write.to_vec()));
        }
        self.last_short_time = Some(*token);
        self.set_time(time, token)
    }

    /// Rejects a year after a day and a month that is rather a time: `5 dec 2030`. Not that of the
    /// last, the present or one of the next three years.
    pub(super) fn check_year(&self) -> Result<(), Error> {
        let (Some(start), Some(year), false) = (self.bare_year, self.year, self.has_time()) else {
            return Ok(());
        };
        let today = i64::from(self.context.today.year());
        let (hour, minute) = (year / 100, year % 100);
        if !self.has_day || minute > 59 || (today - 1..=today + 3).contains(&year) {
            return Ok(());
        }
        let (month, day) = (self.month.unwrap_or_default(), self.day.unwrap_or_default());
        // The weekday decides, and so does `de` in `5 de diciembre de 2030`.
        let weekday = date_of(today, month, day)?
            .weekday()
            .to_sunday_zero_offset();
        let is_other = |(given, _)| given != i64::from(weekday);
        let is_after_de = self.context.is_after(start, &["de", "del"]);
        if self.days.weekday.is_some_and(is_other) || is_after_de {
            return Ok(());
        }
        let write = [
            format!("{today}-{month:02}-{day:02} {hour:02}:{minute:02}"),
            format!("{year}-{month:02}-{day:02}"),
        ];
        let readings = "a time of day or a year";
        Err(self
            .context
            .ambiguous(start..start + 4, readings, write.to_vec()))
    }

    /// The error for a text that starts with no token: two digits at the end, after a day and a
    /// month, are an hour or a year without its century.
    pub(super) fn without_token(&self, text: &str, start: usize) -> Error {
        let number = text.get(start..).unwrap_or_default().trim_end();
        let (Ok(value), 2, true, None) =
            (number.parse::<i64>(), number.len(), self.has_day, self.year)
        else {
            return self.context.unrecognized(start);
        };
        let (month, day) = (self.month.unwrap_or_default(), self.day.unwrap_or_default());
        let hour = (value <= 24 && !self.has_time()).then(|| format!("{value:02}:00"));
        let readings = match hour {
            Some(_) => "an hour or a year of two digits",
            None => "a year of two digits",
        };
        let write = hour
            .into_iter()
            .chain([format!("20{number}-{month:02}-{day:02}")]);
        self.context
            .ambiguous(start..start + 2, readings, write.collect())
    }

    /// Rejects a month alone: PHP takes the present day of the month.
    pub(super) fn check_month(&self) -> Result<(), Error> {
        let names_day = self.day.is_some()
            || self.relative.month_boundary.is_some()
            || matches!(
                self.relative.day_count,
                Some(DayCount::WeekdaysFromMonthStart | DayCount::WeekdaysFromMonthEnd)
            );
        match self.days.month {
            Some(start) if !names_day => Err(self.context.ambiguous(
                start..start + 1,
                "a month without a day",
                vec!["a date such as 2026-11-25".to_owned()],
            )),
            _ => Ok(()),
        }
    }

    /// Rejects a number before a weekday, such as `5 friday`: it is rarely the fifth one from now.
    pub(super) fn number_before_weekday(&self, token: &Token<'_>) -> Error {
        let number = Cursor::new(token.text)
            .number(usize::MAX)
            .unwrap_or_default();
        let start = token.end() - token.text.trim_start().len();
        let (hour, minute) = if number > 24 {
            (number / 100, number % 100)
        } else {
            (number, 0)
        };
        let is_time = hour <= 24 && minute < 60 && (number <= 24 || number >= 100);
        let hour = is_time.then(|| format!("{hour:02}:{minute:02}"));
        let write = hour
            .into_iter()
            .chain(["a date such as 2026-11-25".to_owned()]);
        let readings = "an hour or a day of the month beside a weekday";
        self.context
            .ambiguous(start..token.end(), readings, write.collect())
    }
}

/// Whether the time zone at a position is a UTC offset directly after the token.
fn is_offset_after(zone: usize, token: &Token<'_>) -> bool {
    let length = zone.checked_sub(token.end());
    let after = length.and_then(|length| token.source_from("").split_at_checked(length));
    after.is_some_and(|(spaces, zone)| spaces.trim().is_empty() && zone.starts_with(['+', '-']))
}
