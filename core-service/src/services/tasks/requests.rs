//! What requests about tasks ask for.

use domain::{
    id::{CourierId, StoreId},
    lifecycle::Reschedule,
    task::{StateName, TimeWindow},
    time_slot::window,
    violation::Violations,
    visible::visible,
};
use jiff::{Unit, Zoned, civil::Date};
use proto::{iri::Collection, task::State};
use storage::task_lists::{CourierFilter, Filter};

use crate::{error::Error, messages, planning::validation};

pub(super) fn read_filter(
    request: &proto::ListTasksRequest,
    today: &Zoned,
    violations: &mut Violations,
) -> Result<Filter, Error> {
    let list_day = messages::read_day(&request.day, today.date(), violations);
    let start = |day: Date| Some(day.to_zoned(today.time_zone().clone()).ok()?.timestamp());
    let bounds = start(list_day).zip(list_day.tomorrow().ok().and_then(start));
    if bounds.is_none() {
        violations.add("day", "ABSURD_TIME", "is out of range");
    }
    let (after, before) = bounds.unwrap_or_default();
    let courier = match (&request.courier[..], request.unassigned) {
        ("", false) => CourierFilter::Any,
        ("", true) => CourierFilter::None,
        (_, true) => {
            violations.add("courier", "CONFLICT", "is not for unassigned tasks");
            CourierFilter::None
        }
        (name, false) => {
            CourierFilter::One(CourierId(messages::id_in(Collection::Couriers, name)?))
        }
    };
    if !request.store.is_empty() && request.include_overdue {
        let reason = "is not for the tasks of one store: list the deliveries of the store";
        violations.add("include_overdue", "CONFLICT", reason);
    }
    let store_id = match &*request.store {
        "" => None,
        name => Some(StoreId(messages::id_in(Collection::Stores, name)?)),
    };
    let mut states = Vec::new();
    // Not `request.states()`, which leaves out unknown ones.
    for (index, state) in request.states.iter().enumerate() {
        let state = State::try_from(*state).ok();
        match state.and_then(messages::read_task_state) {
            Some(state) if states.contains(&state) => {}
            Some(state) => states.push(state),
            None => violations.add(
                format!("states[{index}]"),
                "UNKNOWN_STATUS",
                "must be TODO, DOING, DONE, FAILED or CANCELLED",
            ),
        }
    }
    if states.is_empty() {
        states.extend(StateName::ALL);
    }
    Ok(Filter {
        states,
        day: TimeWindow { after, before },
        include_overdue: request.include_overdue,
        list_day,
        courier,
        store_id,
        has_incidents: request.has_incidents,
    })
}

/// The new window, in whole microseconds, as it is stored. `time_slot` takes precedence, as in a draft.
pub(super) fn read_reschedule(
    request: &proto::RescheduleTaskRequest,
    now: &Zoned,
    violations: &mut Violations,
) -> Option<Reschedule> {
    let time_slot = visible(request.time_slot.as_deref().unwrap_or_default());
    let time_slot = time_slot.trim();
    let is_time_slot = !time_slot.is_empty();
    let window = if is_time_slot {
        let parsed = window::parse(time_slot, now.time_zone());
        let window = violations.check("time_slot", "INVALID_TIME_SLOT", parsed);
        window.filter(|window| {
            let mut is_plausible =
                |instant| validation::is_plausible("time_slot", instant, now, violations);
            is_plausible(window.after) && is_plausible(window.before)
        })
    } else if violations.has_violation_in("time_slot") {
        // It is given, although unreadable.
        None
    } else {
        read_window(request, now, violations)
    };
    Some(Reschedule {
        window: window?,
        is_time_slot,
        both: request.both,
    })
}

fn read_window(
    request: &proto::RescheduleTaskRequest,
    now: &Zoned,
    violations: &mut Violations,
) -> Option<TimeWindow> {
    let times = [("after", &request.after), ("before", &request.before)];
    let [after, before] = times.map(|(field, timestamp)| {
        if timestamp.is_none() {
            violations.add(field, "REQUIRED", "is required, unless timeSlot is given");
        }
        let instant = messages::instant(timestamp.as_ref()?);
        let instant = instant.and_then(|instant| instant.round(Unit::Microsecond).ok());
        violations
            .check(field, "INVALID_TIME", instant.ok_or("must be an instant"))
            .filter(|instant| validation::is_plausible(field, *instant, now, violations))
    });
    let (after, before) = (after?, before?);
    if after < before {
        return Some(TimeWindow { after, before });
    }
    violations.add("after", "OUT_OF_ORDER", "must be earlier than `before`");
    None
}
