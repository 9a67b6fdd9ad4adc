//! Phrases and their meaning.

/// The phrases of a language, folded, with one space between words.
pub(super) type Phrases = &'static [(&'static str, PhraseKind)];

/// What a phrase means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhraseKind {
    /// Replaced by these words of the strict grammar.
    Replacement(&'static str),
    /// Ignored: `before`, `the`.
    Filler,
    /// Ignored within a duration.
    And,
    /// Ignored, except after a number: German `am`, which is a meridiem there.
    FillerUnlessAfterNumber,
    /// A time follows, possibly only an hour: `um 10`.
    At,
    /// A duration from now follows.
    In,
    /// A duration from now or a day follows.
    Within,
    /// A duration before now follows: `il y a`.
    AgoPrefix,
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
}
