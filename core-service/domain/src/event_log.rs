//! The log of numbered events: which cursors can be read from.

/// How far a log is numbered, and how far back it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The newest place that is kept no more; 0 while all are.
    pub trimmed_to: i64,
    /// The newest place given; 0 before the first.
    pub last: i64,
}

/// Why what follows a place can't be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// Some of what follows it is kept no more.
    #[error("the events up to {trimmed_to} are kept no more; the oldest is {}", .trimmed_to + 1)]
    Expired { trimmed_to: i64 },
    /// No event has it: it is another log's, or this one has lost some.
    #[error("is beyond the newest event, {last}")]
    Beyond { last: i64 },
}

impl Extent {
    /// The oldest place that is kept, or that the first will have.
    pub fn first(&self) -> i64 {
        self.trimmed_to.saturating_add(1)
    }

    /// Whether everything after a place can be told.
    pub fn check(&self, after: i64) -> Result<(), CursorError> {
        if after < self.trimmed_to {
            return Err(CursorError::Expired {
                trimmed_to: self.trimmed_to,
            });
        }
        if after > self.last {
            return Err(CursorError::Beyond { last: self.last });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_while_all_that_follows_it_is_kept() {
        let empty = Extent::default();
        let some = Extent {
            trimmed_to: 20,
            last: 50,
        };
        let gone = Extent {
            trimmed_to: 50,
            last: 50,
        };
        let expired = |trimmed_to| Err(CursorError::Expired { trimmed_to });
        let beyond = |last| Err(CursorError::Beyond { last });
        for (extent, after, expected) in [
            (empty, 0, Ok(())),
            (empty, 1, beyond(0)),
            (some, 0, expired(20)),
            (some, 19, expired(20)),
            (some, 20, Ok(())),
            (some, 50, Ok(())),
            (some, 51, beyond(50)),
            (some, i64::MAX, beyond(50)),
            (gone, 49, expired(50)),
            (gone, 50, Ok(())),
        ] {
            assert_eq!(extent.check(after), expected, "{extent:?} {after}");
        }
    }
}
