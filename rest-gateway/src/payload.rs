//! The body of a delivery, read as the API reads it, for the operator's commands.

use proto::{DeliveryDraft, Violation};

use crate::{report::Report, resources};

/// A body, as far as it could be read.
#[derive(Debug)]
pub struct Payload {
    pub delivery: DeliveryDraft,
    /// What could not be read, for core to add to.
    pub violations: Vec<Violation>,
    report: Report,
}

impl Payload {
    /// Reads a body of `POST /api/deliveries` or `POST /api/retail_prices/calculate`.
    pub fn read(body: &[u8]) -> Self {
        let mut report = Report::default();
        Self {
            delivery: resources::delivery_draft::read(body, &mut report),
            violations: report.violations(),
            report,
        }
    }

    /// A field that core speaks of, in the body's own words: `dropoff.address.latLng`.
    pub fn path(&self, field: &str) -> String {
        self.report.path(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_read_as_far_as_it_can_be() {
        let body = br#"{"dropoff": {"address": 5, "doneBefore": "tomorrow"}}"#;

        let payload = Payload::read(body);

        let dropoff = payload.delivery.dropoff.as_ref().unwrap();
        assert_eq!(dropoff.before.as_deref(), Some("tomorrow"));
        let fields: Vec<_> = payload
            .violations
            .iter()
            .map(|known| &known.field)
            .collect();
        assert_eq!(fields, ["dropoff.address"]);
        assert_eq!(payload.path("dropoff.before"), "dropoff.doneBefore");
        assert_eq!(payload.path("dropoff.time_slot"), "dropoff.timeSlot");
    }
}
