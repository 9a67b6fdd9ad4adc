//! Parses the filters of a delivery list and collects violations.

use domain::{
    before::{self, DateOrder},
    violation::Violations,
};
use jiff::{Timestamp, ToSpan as _, Zoned};

use storage::delivery_pages::{Filter, Period};

use crate::messages;

const STATES: &str = "must be CREATED, ASSIGNED, STARTED, PICKED, IN_TRANSIT, DROPPED, FAILED, COMPLETED or CANCELLED";

/// Parses the filters of a request, with times in the store's time zone and date order.
pub(crate) fn parse(
    request: proto::ListDeliveriesRequest,
    now: &Zoned,
    order: DateOrder,
    violations: &mut Violations,
) -> Filter {
    let status = request.status.map(|_| request.status());
    let state = request.state.map(|_| request.state());
    let mut instant = |field, text: Option<String>| -> Option<Timestamp> {
        violations.check(field, "INVALID_TIME", before::parse(&text?, now, order))
    };
    Filter {
        created: Period {
            from: instant("created_from", request.created_from),
            until: instant("created_until", request.created_until).and_then(end_of_second),
        },
        dropoff: Period {
            from: instant("dropoff_from", request.dropoff_from),
            until: instant("dropoff_until", request.dropoff_until).and_then(end_of_second),
        },
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
        state: state.and_then(|state| {
            let state = messages::read_delivery_state(state).ok_or(STATES);
            violations.check("state", "UNKNOWN_STATE", state)
        }),
        external_reference: request.external_reference,
    }
}

/// Clients see times in whole seconds, so an upper bound includes its whole second.
fn end_of_second(instant: Timestamp) -> Option<Timestamp> {
    let second = Timestamp::from_second(instant.as_second()).ok()?;
    second.checked_add(1.second()).ok()
}
