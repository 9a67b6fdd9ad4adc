//! JSON-LD responses, the leading members of a resource, and formatted instants.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::LOCATION};
use jiff::{
    Timestamp, Zoned,
    fmt::temporal::DateTimePrinter,
    tz::{Offset, TimeZone},
};
use proto::iri::{self, Collection};
use serde::Serialize;

use crate::{error::Error, request::HandlerResult};

/// A resource as a whole response: with its context.
#[derive(Serialize)]
struct WithContext<'r, R> {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(flatten)]
    resource: &'r R,
}

/// A 200 response with a resource.
pub(crate) fn ok(context: &'static str, resource: &impl Serialize) -> HandlerResult {
    document(&WithContext { context, resource })
}

pub(crate) fn document(document: &impl Serialize) -> HandlerResult {
    let body = serde_json::to_vec(document).map_err(Error::internal)?;
    Ok(Response::new(Bytes::from(body)))
}

/// A 201 response with a new resource and its `Location`.
pub(crate) fn created(
    location: &str,
    context: &'static str,
    resource: &impl Serialize,
) -> HandlerResult {
    let location = HeaderValue::from_str(location).map_err(Error::internal)?;
    let mut response = ok(context, resource)?;
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

pub(crate) fn no_content() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The leading members of an object that is identified by an `@id`. A preview has no `@id` and no
/// `id`.
#[derive(Debug, Serialize)]
pub(crate) struct Node {
    #[serde(rename = "@id", skip_serializing_if = "Option::is_none")]
    iri: Option<String>,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl Node {
    /// A member of a collection. A preview has no name.
    pub(crate) fn new(ld_type: &'static str, collection: Collection, name: &str) -> Self {
        let id = collection.last_segment(name);
        Self {
            iri: id.map(|_| iri::of(name)),
            ld_type,
            id: id.map(str::to_owned),
        }
    }

    /// An object whose class has no member `id` beside `@id`.
    pub(crate) fn with_iri(ld_type: &'static str, iri: impl Into<Option<String>>) -> Self {
        Self {
            iri: iri.into(),
            ld_type,
            id: None,
        }
    }
}

const TO_THE_SECOND: DateTimePrinter = DateTimePrinter::new().precision(Some(0));

/// Formats instants in a store's time zone, with offset, to the second.
pub(crate) struct StoreTimeZone(TimeZone);

impl StoreTimeZone {
    /// Looks up an IANA time zone. Falls back to UTC for a name that only core's newer time zone
    /// data has; the instants stay correct.
    pub(crate) fn named(zone: &str) -> Self {
        Self(TimeZone::get(zone).unwrap_or_else(|_| {
            tracing::warn!(zone, "unknown time zone of a store, using UTC");
            TimeZone::UTC
        }))
    }

    pub(crate) fn zoned(&self, instant: Option<&prost_types::Timestamp>) -> Result<Zoned, Error> {
        Ok(timestamp(instant)?.to_zoned(self.0.clone()))
    }

    pub(crate) fn write(&self, instant: Option<&prost_types::Timestamp>) -> Result<String, Error> {
        let instant = timestamp(instant)?;
        let mut offset = self.0.to_offset(instant);
        // Offsets from before the introduction of standard time have seconds, which RFC 3339 cannot
        // represent.
        if offset.seconds() % 60 != 0 {
            offset = Offset::UTC;
        }
        Ok(TO_THE_SECOND.timestamp_with_offset_to_string(&instant, offset))
    }

    pub(crate) fn write_optional(
        &self,
        instant: Option<&prost_types::Timestamp>,
    ) -> Result<Option<String>, Error> {
        instant.map(|instant| self.write(Some(instant))).transpose()
    }
}

/// Converts an instant that core always sends.
pub(crate) fn timestamp(instant: Option<&prost_types::Timestamp>) -> Result<Timestamp, Error> {
    let instant = instant.ok_or_else(|| Error::incomplete("an instant"))?;
    Timestamp::new(instant.seconds, instant.nanos).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_with_the_offset_it_has_in_its_time_zone() {
        let instant = |seconds| prost_types::Timestamp {
            seconds,
            nanos: 999_000_000,
        };

        for (zone, seconds, expected) in [
            ("Europe/Paris", 1_585_821_600, "2020-04-02T12:00:00+02:00"),
            ("Europe/Paris", 1_577_872_800, "2020-01-01T11:00:00+01:00"),
            (
                "America/New_York",
                1_585_821_600,
                "2020-04-02T06:00:00-04:00",
            ),
            ("UTC", 1_585_821_600, "2020-04-02T10:00:00+00:00"),
            ("Europe/Paris", -2_486_592_561, "1891-03-15T23:50:39+00:00"),
            ("Europe/Paris", -1_000_000_000, "1938-04-24T23:13:20+01:00"),
            ("Mars/Olympus", 1_585_821_600, "2020-04-02T10:00:00+00:00"),
        ] {
            let written = StoreTimeZone::named(zone)
                .write(Some(&instant(seconds)))
                .unwrap();

            assert_eq!(written, expected, "{zone}");
        }
        assert!(
            StoreTimeZone::named("UTC")
                .write(Some(&instant(i64::MAX)))
                .is_err()
        );
        assert!(StoreTimeZone::named("UTC").write(None).is_err());
    }
}
