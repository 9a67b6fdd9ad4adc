//! The strict grammar. At each position of a text the rule with the longest match wins; of two
//! matches of equal length, the earlier rule.

mod dates;
mod fragments;
mod keywords;
mod rule;
mod times;

pub(super) use rule::{Field, Rule, TokenKind};

/// The rules in order of precedence.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    [keywords::RULES, times::RULES, dates::RULES]
        .into_iter()
        .flatten()
}
