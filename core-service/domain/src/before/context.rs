//! What tokens are read against, and where a refused one stands in what its writer wrote.

use super::DateOrder;
use super::error::Error;
use jiff::civil::Date;
use std::ops::Range;

#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// What the writer wrote.
    pub(super) original: &'a str,
    /// Where the words of what is read come from in the original, if it was put in other words:
    /// pairs of a place in what is read and one in the original, both ascending.
    pub(super) origins: &'a [(usize, usize)],
    pub(super) today: Date,
    pub(super) order: DateOrder,
}

impl Context<'_> {
    pub(super) fn not_understood(&self, at: usize) -> Error {
        Error::not_understood(self.original, self.origin(at))
    }

    pub(super) fn twice(&self, what: &'static str, at: usize) -> Error {
        Error::twice(what, self.original, self.origin(at))
    }

    pub(super) fn range(&self, range: Range<usize>) -> Error {
        let origin = self.origin(range.start)..self.origin(range.end);
        Error::Range {
            range: self
                .original
                .get(origin)
                .unwrap_or(self.original)
                .to_owned(),
        }
    }

    fn origin(&self, at: usize) -> usize {
        let after = self.origins.partition_point(|(place, _)| *place <= at);
        match after
            .checked_sub(1)
            .and_then(|index| self.origins.get(index))
        {
            Some((_, origin)) => *origin,
            None => at,
        }
    }
}
