//! Parses the filters of a delivery list and collects violations.

use domain::{
    before::{self, DateOrder},
    violation::Violations,
};
use jiff::{Timestamp, ToSpan as _, Zoned, civil::Date, tz::TimeZone};

use storage::delivery_pages::{Filter, Period};

use crate::messages;

const STATES: &str = "must be CREATED, ASSIGNED, STARTED, PICKED, IN_TRANSIT, DROPPED, FAILED, COMPLETED or CANCELLED";

/// In what a list is read.
pub(super) struct Context {
    /// In the time zone of local times.
    pub(super) now: Zoned,
    pub(super) order: DateOrder,
    /// In the platform's time zone, of which days are.
    pub(super) today: Zoned,
    pub(super) is_of_all_stores: bool,
}

/// Parses the filters of a request.
pub(super) fn parse(
    request: proto::ListDeliveriesRequest,
    context: &Context,
    violations: &mut Violations,
) -> Filter {
    let status = request.status.map(|_| request.status());
    let state = request.state.map(|_| request.state());
    let is_created_filtered = request.created_from.is_some() || request.created_until.is_some();
    // No index of all stores has them: a page reads the deliveries of a day.
    let is_filtered =
        status.is_some() || state.is_some() || request.cancelled.is_some() || is_created_filtered;
    let is_bounded = !request.day.is_empty() || request.external_reference.is_some();
    if context.is_of_all_stores && is_filtered && !is_bounded {
        let description = "is required for `status`, `state`, `cancelled`, `created_from` and `created_until` in a list of all stores";
        violations.add("day", "REQUIRED", description);
    }
    let day = read_day(&request.day, &context.today, violations);
    let mut instant = |field, text: Option<String>| -> Option<Timestamp> {
        let parsed = before::parse(&text?, &context.now, context.order);
        violations.check(field, "INVALID_TIME", parsed)
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
        day,
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

/// The instants of a day; of all days if the text is empty.
fn read_day(text: &str, today: &Zoned, violations: &mut Violations) -> Period {
    let day = match text {
        "" => return Period::default(),
        "today" => today.date(),
        text => messages::read_day(text, today.date(), violations),
    };
    let bounds = bounds(day, day, today.time_zone()).ok_or("is out of range");
    let bounds = violations.check("day", "ABSURD_TIME", bounds);
    Period {
        from: bounds.map(|[from, _]| from),
        until: bounds.map(|[_, until]| until),
    }
}

/// The first instant of a day, and the one after the end of another day.
pub(super) fn bounds(first: Date, last: Date, zone: &TimeZone) -> Option<[Timestamp; 2]> {
    let start = |day: Date| Some(day.to_zoned(zone.clone()).ok()?.timestamp());
    Some([start(first)?, start(last.tomorrow().ok()?)?])
}

/// Clients see times in whole seconds, so an upper bound includes its whole second.
fn end_of_second(instant: Timestamp) -> Option<Timestamp> {
    let second = Timestamp::from_second(instant.as_second()).ok()?;
    second.checked_add(1.second()).ok()
}
