//! What a text says so far: a date, a time, a zone, and how far to go from there.

use super::context::Context;
use super::error::Error;
use super::grammar::{CLOCK24_FIELDS, Field, Meaning};
use super::lexer::{Cursor, Token};
use super::relative::Relative;
use super::slashes;
use super::zone::{self, Zone};

/// A time of day. It may run over: 24:00 and a 60th second are the next day and minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) microsecond: i64,
}

/// How firmly the time of day is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Certainty {
    /// Not said, or midnight because a day was said.
    #[default]
    Implied,
    /// Said before a day word, which keeps it, but a later time may replace it.
    Kept,
    Said,
    /// Said together with a year of its own, so that four more digits are neither.
    SaidWithYear,
}

#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    pub(super) clock: Option<Clock>,
    pub(super) zone: Option<Zone>,
    pub(super) relative: Relative,
    certainty: Certainty,
    has_date: bool,
    /// A day of the month was said, so that it has to be one of the calendar.
    names_day: bool,
    /// How many zones stand by themselves; a second one is passed over, as PHP does.
    zones: u8,
    /// Where the last `HH:MM` or `HHMM` stands, and whether after a `T`.
    bare_clock: Option<(usize, usize, bool)>,
}

impl Reading {
    /// The time of day is said, not only implied by a day.
    pub(super) fn has_time(&self) -> bool {
        self.certainty != Certainty::Implied
    }

    pub(super) fn has_date(&self) -> bool {
        self.has_date
    }

    pub(super) fn names_day(&self) -> bool {
        self.has_date && self.names_day
    }

    /// A zone stands by itself in the text.
    pub(super) fn has_zone(&self) -> bool {
        self.zones > 0
    }

    pub(super) fn apply(&mut self, token: &Token<'_>, context: Context<'_>) -> Result<(), Error> {
        match token.meaning {
            Meaning::Blank | Meaning::Now => {}
            Meaning::Yesterday => self.day_word(-1),
            Meaning::Today => self.start_day(),
            Meaning::Tomorrow => self.day_word(1),
            Meaning::Midnight => self.set_clock(Clock::default(), Certainty::Implied),
            Meaning::Noon => self.set_clock(
                Clock {
                    hour: 12,
                    ..Clock::default()
                },
                Certainty::Said,
            ),
            Meaning::QuarterOfHour => self.quarter_of_hour(token),
            Meaning::Timestamp => self.timestamp(token, context)?,
            Meaning::Fields(fields) => self.fields(fields, token, context)?,
            Meaning::MonthFirst | Meaning::DayFirst => {
                self.claim_date(token, context)?;
                let (year, month, day) = slashes::date(token, context)?;
                self.year = year.or(self.year);
                self.month = Some(month);
                self.day = Some(day);
                self.names_day = true;
            }
            Meaning::ClockOrYear => self.clock_or_year(token, context)?,
            Meaning::Year => self.year = Cursor::new(token.text).number(4).map(|(year, _)| year),
            Meaning::Month => {
                self.claim_date(token, context)?;
                self.month = super::words::month(Cursor::new(token.text).word());
            }
            Meaning::Zone => self.lone_zone(token, context)?,
            Meaning::Ago => self.relative.turn_back(),
            Meaning::Amount => self.relative.amount(token).ok_or(Error::OutOfRange)?,
            Meaning::WeekOfCalendar => self.relative.week_of_calendar(token),
            Meaning::BoundaryOfMonth => self.relative.boundary_of_month(token),
            Meaning::Weekday => {
                self.relative.weekday(token);
                self.start_day();
            }
            Meaning::WeekdayOfMonth => {
                self.relative.weekday_of_month(token);
                self.start_day();
            }
            Meaning::Next => {
                if self.relative.next(token) {
                    self.start_day();
                }
            }
        }
        Ok(())
    }

    fn day_word(&mut self, days: i64) {
        self.relative.days = days;
        self.start_day();
    }

    /// A day begins at midnight, unless a time was said before it.
    fn start_day(&mut self) {
        if self.has_time() {
            self.certainty = Certainty::Kept;
        } else {
            self.clock = Some(Clock::default());
        }
    }

    fn set_clock(&mut self, clock: Clock, certainty: Certainty) {
        self.clock = Some(clock);
        self.certainty = certainty;
    }

    fn claim_clock(&mut self, token: &Token<'_>, context: Context<'_>) -> Result<(), Error> {
        if matches!(self.certainty, Certainty::Said | Certainty::SaidWithYear) {
            return Err(context.twice("time", token.start));
        }
        self.certainty = Certainty::Said;
        Ok(())
    }

    fn claim_date(&mut self, token: &Token<'_>, context: Context<'_>) -> Result<(), Error> {
        if self.has_date {
            return Err(context.twice("date", token.start));
        }
        self.has_date = true;
        Ok(())
    }

    /// The quarter after (`back of`) or before (`front of`) an hour.
    fn quarter_of_hour(&mut self, token: &Token<'_>) {
        let mut cursor = Cursor::new(token.text);
        let after = cursor.word().eq_ignore_ascii_case("back");
        let (said, _) = cursor.number(2).unwrap_or_default();
        let (hour, minute) = if after { (said, 15) } else { (said - 1, 45) };
        let hour = hour + meridian(&cursor, hour);
        self.set_clock(
            Clock {
                hour,
                minute,
                ..Clock::default()
            },
            Certainty::Said,
        );
    }

    /// Seconds since 1970 in UTC, which a time and a distance after it then change.
    fn timestamp(&mut self, token: &Token<'_>, context: Context<'_>) -> Result<(), Error> {
        if self.zones > 0 {
            return Err(context.twice("zone", token.start));
        }
        let mut cursor = Cursor::new(token.text);
        let sign = cursor.sign();
        let (seconds, _) = cursor.number(usize::MAX).ok_or(Error::OutOfRange)?;
        if cursor.peek() == Some(b'.') {
            self.relative.microseconds = sign * cursor.microseconds();
        }
        self.relative.seconds += sign * seconds;
        (self.year, self.month, self.day) = (Some(1970), Some(1), Some(1));
        self.has_date = false;
        self.set_clock(Clock::default(), Certainty::Implied);
        self.zone = Some(Zone::Fixed(0));
        self.zones = 1;
        Ok(())
    }

    fn clock_or_year(&mut self, token: &Token<'_>, context: Context<'_>) -> Result<(), Error> {
        let mut cursor = Cursor::new(token.text);
        match self.certainty {
            Certainty::Implied | Certainty::Kept => {
                let (hour, _) = cursor.number(2).unwrap_or_default();
                let (minute, _) = cursor.number(2).unwrap_or_default();
                self.set_clock(
                    Clock {
                        hour,
                        minute,
                        ..Clock::default()
                    },
                    Certainty::Said,
                );
                self.bare_clock =
                    Some((token.start, token.end(), token.text.starts_with(['t', 'T'])));
            }
            Certainty::Said => {
                self.year = cursor.number(4).map(|(year, _)| year);
                self.certainty = Certainty::SaidWithYear;
            }
            Certainty::SaidWithYear => return Err(context.twice("time", token.start)),
        }
        Ok(())
    }

    fn lone_zone(&mut self, token: &Token<'_>, context: Context<'_>) -> Result<(), Error> {
        self.zones += 1;
        match self.zones {
            1 => self.read_zone(token.text, token, context),
            2 => Ok(()),
            _ => Err(context.twice("zone", token.start)),
        }
    }

    fn read_zone(
        &mut self,
        name: &str,
        token: &Token<'_>,
        context: Context<'_>,
    ) -> Result<(), Error> {
        let zone = zone::parse(name).ok_or_else(|| context.not_understood(token.start))?;
        if let Some(range) = self.range(&zone, name, token) {
            return Err(context.range(range));
        }
        self.zone = Some(zone);
        Ok(())
    }

    /// `10:00-11:00` is two times, not one eleven hours west of UTC. After a `T` or a blank it can
    /// be an offset, if there is such a one.
    fn range(&self, zone: &Zone, name: &str, token: &Token<'_>) -> Option<std::ops::Range<usize>> {
        let (start, end, after_t) = self.bare_clock?;
        let Zone::Fixed(seconds) = zone else {
            return None;
        };
        let adjacent = end == token.start && !after_t;
        (name.starts_with('-') && (adjacent || *seconds < FARTHEST_WEST))
            .then(|| start..token.end())
    }

    fn fields(
        &mut self,
        fields: &[Field],
        token: &Token<'_>,
        context: Context<'_>,
    ) -> Result<(), Error> {
        if fields.contains(&Field::Hour) {
            self.claim_clock(token, context)?;
        }
        if fields
            .iter()
            .any(|field| matches!(field, Field::Year | Field::MonthName))
        {
            self.claim_date(token, context)?;
        }
        let mut clock = Clock::default();
        let mut says_second = false;
        let mut cursor = Cursor::new(token.text);
        for field in fields {
            match field {
                Field::Hour => clock.hour = cursor.number(2).unwrap_or_default().0,
                Field::Minute if at_number(&cursor) => {
                    clock.minute = cursor.number(2).unwrap_or_default().0;
                }
                Field::Second if at_number(&cursor) => {
                    clock.second = cursor.number(2).unwrap_or_default().0;
                    says_second = true;
                }
                Field::Minute | Field::Second => {}
                Field::Fraction => clock.microsecond = cursor.microseconds(),
                Field::Meridian => clock.hour += meridian(&cursor, clock.hour),
                Field::Zone if cursor.remainder().is_empty() => {}
                Field::Zone => self.read_zone(cursor.remainder(), token, context)?,
                field => self.date_field(*field, &mut cursor, token),
            }
        }
        if fields.contains(&Field::Hour) {
            self.clock = Some(clock);
            if !says_second && !fields.contains(&Field::Meridian) {
                let after_t = fields == CLOCK24_FIELDS && token.text.starts_with(['t', 'T']);
                self.bare_clock = Some((token.start, token.end(), after_t));
            }
        }
        Ok(())
    }

    fn date_field(&mut self, field: Field, cursor: &mut Cursor<'_>, token: &Token<'_>) {
        match field {
            Field::Year => {
                let (sign, width) = match token.text.bytes().next() {
                    Some(b'-') => (-1, usize::MAX),
                    Some(b'+') => (1, usize::MAX),
                    _ => (1, 4),
                };
                self.year = cursor
                    .number(width)
                    .map(|(year, digits)| sign * full_year(year, digits));
            }
            Field::Month => self.month = cursor.number(2).map(|(month, _)| month),
            Field::MonthName => {
                cursor.skip_ordinal_suffix();
                self.month = super::words::month(cursor.word());
            }
            Field::Day => {
                self.day = cursor.number(2).map(|(day, _)| day);
                self.names_day = true;
            }
            Field::FirstOfMonth => self.day = Some(1),
            Field::DayOfYear => {
                self.month = Some(1);
                self.day = cursor.number(3).map(|(day, _)| day);
            }
            Field::Week => {
                (self.month, self.day) = (Some(1), Some(1));
                self.relative
                    .set_week(self.year.unwrap_or_default(), cursor.number(2));
            }
            Field::WeekDay => self.relative.set_day_of_week(cursor.number(1)),
            Field::Hour
            | Field::Minute
            | Field::Second
            | Field::Fraction
            | Field::Meridian
            | Field::Zone => {}
        }
    }
}

/// No place on Earth is farther from UTC than twelve hours in the west.
const FARTHEST_WEST: i64 = -12 * 3600;

/// Two digits are a year from 1970 to 2069.
pub(super) fn full_year(year: i64, digits: usize) -> i64 {
    match year {
        0..70 if digits < 4 => year + 2000,
        70..100 if digits < 4 => year + 1900,
        _ => year,
    }
}

/// A part of a time follows, not a meridian or a zone.
fn at_number(cursor: &Cursor<'_>) -> bool {
    cursor
        .peek()
        .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))
}

/// What `am` or `pm` adds to an hour.
fn meridian(cursor: &Cursor<'_>, hour: i64) -> i64 {
    match (cursor.remainder().bytes().next(), hour) {
        (Some(b'a' | b'A'), 12) => -12,
        (Some(b'p' | b'P'), 12) => 0,
        (Some(b'p' | b'P'), _) => 12,
        _ => 0,
    }
}
