//! Parses the filters of a delivery list and collects violations.

use domain::{
    before::{self, DateOrder},
    violation::Violations,
};
use jiff::{Timestamp, ToSpan as _, Zoned};

use storage::delivery_pages::{Filter, Period};

/// Parses the filters of a request, with times in the store's time zone and date order.
pub(crate) fn parse(
    request: proto::ListDeliveriesRequest,
    context: (&Zoned, DateOrder),
    violations: &mut Violations,
) -> Filter {
    let status = request.status.map(|_| request.status());
    let mut period = |(from, until): (&str, &str), texts: (Option<String>, Option<String>)| {
        let from = instant(from, texts.0, context, violations);
        let last = instant(until, texts.1, context, violations);
        Period {
            from,
            until: last.and_then(end_of_second),
        }
    };
    Filter {
        created: period(
            ("created_from", "created_until"),
            (request.created_from, request.created_until),
        ),
        dropoff: period(
            ("dropoff_from", "dropoff_until"),
            (request.dropoff_from, request.dropoff_until),
        ),
        is_completed: match status {
            None => None,
            Some(proto::task::Status::Todo) => Some(false),
            Some(proto::task::Status::Done) => Some(true),
            Some(proto::task::Status::Unspecified) => {
                violations.add("status", "UNKNOWN_STATUS", "must be TODO or DONE");
                None
            }
        },
        is_cancelled: request.cancelled,
        external_reference: request.external_reference,
    }
}

fn instant(
    field: &str,
    text: Option<String>,
    (now, order): (&Zoned, DateOrder),
    violations: &mut Violations,
) -> Option<Timestamp> {
    violations.check(field, "INVALID_TIME", before::parse(&text?, now, order))
}

/// Clients see times in whole seconds, so an upper bound includes its whole second.
fn end_of_second(instant: Timestamp) -> Option<Timestamp> {
    let second = Timestamp::from_second(instant.as_second()).ok()?;
    second.checked_add(1.second()).ok()
}
