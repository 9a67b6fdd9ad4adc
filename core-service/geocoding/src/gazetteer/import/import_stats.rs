//! Statistics of an import: the counts of imported addresses and of skipped lines.

use std::{collections::BTreeMap, fmt};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportStats {
    pub imported: u64,
    pub skipped: BTreeMap<SkipReason, Skipped>,
}

/// Lines skipped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub lines: u64,
    /// The file and line of the first.
    pub first: (String, u64),
}

/// Why a line was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum SkipReason {
    /// Not valid for the format.
    #[error("invalid")]
    Invalid,
    /// A feature without properties.
    #[error("no address")]
    NoAddress,
    #[error("no street")]
    NoStreet,
    #[error("no house number")]
    NoNumber,
    #[error("no town or postcode")]
    NoTownOrPostcode,
    #[error("no point")]
    NoPoint,
    /// Latitude or longitude is out of range.
    #[error("point out of range")]
    PointOutOfRange,
    /// The address was imported before.
    #[error("duplicate")]
    Duplicate,
}

impl ImportStats {
    pub(super) fn skip(&mut self, reason: SkipReason, file: &str, line: u64) {
        self.skipped
            .entry(reason)
            .or_insert_with(|| Skipped {
                lines: 0,
                first: (file.to_owned(), line),
            })
            .lines += 1;
    }
}

impl fmt::Display for ImportStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} imported", self.imported)?;
        for (reason, skipped) in &self.skipped {
            let (file, line) = &skipped.first;
            write!(
                f,
                ", {} skipped: {reason} (first in {file}, line {line})",
                skipped.lines
            )?;
        }
        Ok(())
    }
}
