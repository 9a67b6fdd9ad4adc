//! What the words of a language mean in addresses.

/// All entries as [`super::folded`] gives them.
pub(super) struct Language {
    /// Words that mean the same, most of them abbreviations; the first stands for all.
    pub(super) same: &'static [&'static [&'static str]],
    /// Abbreviated ends of words: `hauptstr` is `hauptstrasse`.
    pub(super) endings: &'static [(&'static str, &'static str)],
    /// Kinds of streets that are written in one word with the name or apart from it.
    pub(super) glued: &'static [&'static str],
    /// Kinds of streets that are words of their own.
    pub(super) kinds: &'static [&'static str],
    /// What a person's name has before it, or not.
    pub(super) titles: &'static [&'static str],
    /// Left out by people who write fast, so left out of every comparison.
    pub(super) articles: &'static [&'static str],
    /// What stands before a house number and says that it is one.
    pub(super) number_marks: &'static [&'static str],
    /// What stands after a house number and belongs to it, single letters aside.
    pub(super) number_suffixes: &'static [&'static str],
    /// What begins a remark about the way inside the house.
    pub(super) indoors: &'static [&'static str],
    /// Which of these stand behind their number: `3e étage`.
    pub(super) floors: &'static [&'static str],
    /// Names of regions, which people write after the town.
    pub(super) regions: &'static [&'static str],
    /// Is `king's` one word?
    pub(super) possessive: bool,
}
