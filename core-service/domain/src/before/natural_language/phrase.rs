//! Phrases and their meaning.

/// What a phrase means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhraseKind {
    /// Replaced by these words of the strict grammar.
    Replacement(&'static str),
    /// Ignored: `on`, `the`.
    Filler,
    /// Ignored, but rejected after a duration of clock units: `15 minutes at 18:00`.
    FillerUnlessAfterDuration,
    /// Ignored, but rejected after a duration: `2 hours before`.
    Before,
    /// Ignored within a duration.
    And,
    /// Ignored, except after a number: German `am`, which is a meridiem there.
    FillerUnlessAfterNumber,
    /// A time follows, possibly only an hour: `um 10`.
    At,
    /// Both `Before` and `At`: `avant 18 heures`.
    BeforeAt,
    /// A duration from now follows.
    In,
    /// A duration from now or a day follows.
    Within,
    /// `Within`, but not before hours, which may be a time of day: French `d'ici`.
    WithinOrBefore,
    /// `BeforeAt` before an hour with an `h`, otherwise `WithinOrBefore`: French `d'ici à`.
    WithinOrBeforeAt,
    /// A duration before now follows: `il y a`.
    AgoPrefix,
    /// `AgoPrefix` with a duration after it, otherwise `BeforeAt`: German `vor`.
    AgoOrBefore,
    /// A duration from now precedes: `2 hours from now`.
    FromNow,
    /// A duration before now precedes: `2 hours ago`.
    Ago,
    /// A number in a duration: `an`, `zwei`.
    Number(&'static str),
    Unit(&'static str),
    /// Hours in a duration, or the hour of the day after a preposition: `à 10 heures`.
    Hour,
    /// The number before it is an hour of the day: `10 Uhr`.
    OClock,
    /// The weekday or unit before it is the next one: `lundi prochain`.
    NextSuffix,
    /// The weekday or unit before it is the last one.
    LastSuffix,
    /// Today, at this hour unless a time is given.
    Evening(i64),
    /// A part of the day; a time of day from the one hour to the other must be given.
    PartOfDay(i64, i64),
    /// German `morgen`: the morning of a day just named, otherwise tomorrow.
    TomorrowOrMorning,
}

pub(super) const MORNING: PhraseKind = PhraseKind::PartOfDay(0, 11);
pub(super) const AFTERNOON: PhraseKind = PhraseKind::PartOfDay(12, 19);
pub(super) const EVENING: PhraseKind = PhraseKind::PartOfDay(16, 23);
pub(super) const NIGHT: PhraseKind = PhraseKind::PartOfDay(18, 23);

/// These contain no amount such as `+1 day`, because an amount would be a duration.
pub(super) const DAY_AFTER_TOMORROW: PhraseKind = PhraseKind::Replacement("tomorrow next day");
pub(super) const DAY_BEFORE_YESTERDAY: PhraseKind = PhraseKind::Replacement("yesterday last day");
