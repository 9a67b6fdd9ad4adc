//! The stored form of an instant: microseconds since 1970, exact and ordered on both engines.

use jiff::Timestamp;
use sea_orm::DeriveValueType;

use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, DeriveValueType)]
pub struct Instant(pub i64);

impl From<Timestamp> for Instant {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp.as_microsecond())
    }
}

impl TryFrom<Instant> for Timestamp {
    type Error = Error;

    fn try_from(instant: Instant) -> Result<Self, Self::Error> {
        Self::from_microsecond(instant.0).map_err(|error| Error::inconsistent("instant", error))
    }
}

/// An instant that may be absent.
pub(crate) fn optional(instant: Option<Instant>) -> Result<Option<Timestamp>, Error> {
    instant.map(Timestamp::try_from).transpose()
}
