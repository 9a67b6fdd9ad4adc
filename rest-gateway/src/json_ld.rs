//! JSON-LD responses, the leading members of a resource, and formatted instants.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::LOCATION};
use jiff::{
    Timestamp,
    fmt::temporal::DateTimePrinter,
    tz::{Offset, TimeZone},
};
use proto::iri::{self, Collection};
use serde::Serialize;

use crate::{error::Error, gateway::HandlerResult};

/// A 200 response with a resource.
pub(crate) fn ok(resource: &impl Serialize) -> HandlerResult {
    let body = serde_json::to_vec(resource).map_err(|error| Error::Internal(error.into()))?;
    Ok(Response::new(Bytes::from(body)))
}

/// A 201 response with a new resource and its `Location`.
pub(crate) fn created(public_url: &str, iri: &str, resource: &impl Serialize) -> HandlerResult {
    let location = HeaderValue::from_str(&format!("{public_url}{iri}"))
        .map_err(|error| Error::Internal(error.into()))?;
    let mut response = ok(resource)?;
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// A 204 response.
pub(crate) fn no_content() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The leading members of a resource.
#[derive(Debug, Serialize)]
pub(crate) struct Node {
    #[serde(rename = "@context", skip_serializing_if = "Option::is_none")]
    context: Option<&'static str>,
    #[serde(rename = "@id")]
    iri: String,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    id: String,
}

impl Node {
    /// A node without a context, for embedding.
    pub(crate) fn new(ld_type: &'static str, collection: Collection, name: &str) -> Self {
        Self {
            context: None,
            iri: iri::of(name),
            ld_type,
            id: collection.last_segment(name).unwrap_or_default().to_owned(),
        }
    }

    /// A node with its context: the resource is the whole response.
    pub(crate) fn root(
        context: &'static str,
        ld_type: &'static str,
        collection: Collection,
        name: &str,
    ) -> Self {
        Self {
            context: Some(context),
            ..Self::new(ld_type, collection, name)
        }
    }

    /// Adds the context: the resource is the whole response.
    pub(crate) fn set_context(&mut self, context: &'static str) {
        self.context = Some(context);
    }

    pub(crate) fn iri(&self) -> &str {
        &self.iri
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

    pub(crate) fn write(&self, instant: Option<&prost_types::Timestamp>) -> Result<String, Error> {
        let instant = timestamp(instant)?;
        let mut offset = self.0.to_offset(instant);
        // Offsets before standard time have seconds, which RFC 3339 cannot represent.
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
    Timestamp::new(instant.seconds, instant.nanos).map_err(|error| Error::Internal(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_with_the_offset_it_has_in_its_zone() {
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
