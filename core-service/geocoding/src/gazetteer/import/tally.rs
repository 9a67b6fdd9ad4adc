//! What an import took, what it skipped, and why.

use std::{collections::BTreeMap, fmt};

/// Counts of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub taken: u64,
    pub skipped: BTreeMap<Why, Skipped>,
}

/// Lines skipped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub lines: u64,
    /// The first of them: a file and its line.
    pub first: (String, u64),
}

/// Why a line is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Not as the format has it.
    Unreadable,
    /// A feature that is no point.
    NoAddress,
    NoStreet,
    NoNumber,
    /// Neither town nor postcode.
    NoTown,
    NoPoint,
    /// Latitude and longitude are not on the earth.
    OffEarth,
    /// The address was there before.
    Repeated,
}

impl Tally {
    pub(super) fn skip(&mut self, why: Why, name: &str, line: u64) {
        self.skipped
            .entry(why)
            .or_insert_with(|| Skipped {
                lines: 0,
                first: (name.to_owned(), line),
            })
            .lines += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} taken", self.taken)?;
        for (why, skipped) in &self.skipped {
            let (name, line) = &skipped.first;
            write!(
                f,
                ", {} skipped: {why} (first in {name}, line {line})",
                skipped.lines
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "unreadable",
            Self::NoAddress => "no address",
            Self::NoStreet => "no street",
            Self::NoNumber => "no house number",
            Self::NoTown => "no town",
            Self::NoPoint => "no point",
            Self::OffEarth => "not on the earth",
            Self::Repeated => "known already",
        })
    }
}
