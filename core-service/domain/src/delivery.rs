//! Deliveries: one pickup and one dropoff, and the windows of both. `lifecycle` has the rules for changing them.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};

use crate::{
    courier::ListKey,
    id::{DeliveryId, StoreId, TaskId, TimeSlotId},
    money::Price,
    named_enum::named_enum,
    task::{Task, TaskKind, TimeWindow},
    tracking::TrackingLink,
    violation::Violations,
};

/// The route from the pickup to the dropoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub distance_meters: u32,
    pub duration_seconds: u32,
    pub source: DistanceSource,
}

impl Route {
    /// A route in whole metres and seconds, with saturation.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, as documented"
    )]
    pub fn rounded(meters: f64, seconds: f64, source: DistanceSource) -> Self {
        Self {
            distance_meters: meters.round() as u32,
            duration_seconds: seconds.round() as u32,
            source,
        }
    }
}

named_enum! {
    /// The origin of a route's distance.
    pub enum DistanceSource("distance source", ", ") {
        /// An estimate from the great-circle distance.
        StraightLine = "straight_line",
        /// The router.
        Osrm = "osrm",
    }
}

/// A booking of a time slot with limited capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    pub time_slot_id: TimeSlotId,
    /// The slot's window; the task's window may start later.
    pub window: TimeWindow,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub store_id: StoreId,
    pub pickup: Task,
    pub dropoff: Task,
    pub route: Route,
    pub price: Option<Price>,
    /// The name of the quote that sets its price, if any.
    pub retail_price: Option<String>,
    /// The booking of its dropoff's slot; none without a slot or without a limited capacity. Kept
    /// when the delivery is cancelled, which releases its place: it may be taken again.
    pub booking: Option<Booking>,
    pub created_at: Timestamp,
    /// The store's own identifier, unique per store.
    pub external_reference: Option<String>,
    /// Whether its personal data was erased.
    pub is_erased: bool,
    /// The link of its tracking page; none once it is erased.
    pub tracking: Option<TrackingLink>,
}

impl Delivery {
    pub fn task(&self, kind: TaskKind) -> &Task {
        match kind {
            TaskKind::Pickup => &self.pickup,
            TaskKind::Dropoff => &self.dropoff,
        }
    }

    /// Which of its tasks has an id.
    pub fn kind_of(&self, id: TaskId) -> TaskKind {
        if self.pickup.id == id {
            TaskKind::Pickup
        } else {
            TaskKind::Dropoff
        }
    }

    pub(crate) fn task_mut(&mut self, kind: TaskKind) -> &mut Task {
        match kind {
            TaskKind::Pickup => &mut self.pickup,
            TaskKind::Dropoff => &mut self.dropoff,
        }
    }

    pub fn into_task(self, kind: TaskKind) -> Task {
        match kind {
            TaskKind::Pickup => self.pickup,
            TaskKind::Dropoff => self.dropoff,
        }
    }

    /// Whether each of its tasks is in one of these lists, or in none.
    pub fn is_in_lists(&self, lists: &BTreeSet<ListKey>) -> bool {
        let mut places = [self.pickup.place, self.dropoff.place]
            .into_iter()
            .flatten();
        places.all(|place| lists.contains(&place.list))
    }

    /// When the second of its tasks was done.
    pub fn completed_at(&self) -> Option<Timestamp> {
        let [pickup, dropoff] = [&self.pickup, &self.dropoff].map(Task::completed_at);
        Some(pickup?.max(dropoff?))
    }

    pub fn cancelled_at(&self) -> Option<Timestamp> {
        self.pickup.cancelled_at().or(self.dropoff.cancelled_at())
    }
}

/// Length of a window for which neither a slot nor a start is requested.
const DEFAULT_LENGTH: SignedDuration = SignedDuration::from_mins(15);

/// The requested times of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    pub slot: Option<TimeWindow>,
    pub before: Option<Timestamp>,
    pub after: Option<Timestamp>,
    /// Whether the request has a slot or a `before`, valid or not.
    pub is_end_requested: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskWindows {
    pub pickup: TimeWindow,
    pub dropoff: TimeWindow,
}

/// The windows of both tasks; `None` if one is unknown or empty. A pickup without a
/// requested slot or end ends one route duration before the dropoff's window ends. Violations show
/// times in `zone`, the store's time zone.
pub fn task_windows(
    pickup: &TaskTimes,
    dropoff: &TaskTimes,
    route: Option<Route>,
    zone: &TimeZone,
    violations: &mut Violations,
) -> Option<TaskWindows> {
    let dropoff_window = task_window("dropoff", dropoff, dropoff.before, zone, violations);
    let arrival = dropoff_window.map(|window| window.before);
    let departure = arrival.zip(route).and_then(|(arrival, route)| {
        earlier(
            arrival,
            SignedDuration::from_secs(route.duration_seconds.into()),
        )
    });
    let end = if pickup.is_end_requested {
        pickup.before
    } else {
        departure
    };
    let pickup_window = task_window("pickup", pickup, end, zone, violations);
    if pickup.is_end_requested
        && let (Some(first), Some(second)) = (pickup_window, dropoff_window)
        && first.before > second.before
    {
        let field = match pickup.slot {
            Some(_) => "pickup.time_slot",
            None => "pickup.before",
        };
        violations.add(
            field,
            "OUT_OF_ORDER",
            format!(
                "must not be later than the dropoff's end, {}",
                shown(second.before, zone)
            ),
        );
    }
    Some(TaskWindows {
        pickup: pickup_window?,
        dropoff: dropoff_window?,
    })
}

/// The slot, or else the window of `DEFAULT_LENGTH` that ends at `end`. A requested `after`
/// replaces the start of either.
fn task_window(
    task: &str,
    times: &TaskTimes,
    end: Option<Timestamp>,
    zone: &TimeZone,
    violations: &mut Violations,
) -> Option<TimeWindow> {
    let (start, end) = match times.slot {
        Some(slot) => (slot.after, slot.before),
        None => (earlier(end?, DEFAULT_LENGTH)?, end?),
    };
    let after = times.after.unwrap_or(start);
    if after >= end {
        violations.add(
            format!("{task}.after"),
            "OUT_OF_ORDER",
            format!("must be earlier than the task's end, {}", shown(end, zone)),
        );
        return None;
    }
    Some(TimeWindow { after, before: end })
}

/// Warns of requested times that are past: a store may create a delivery that has already been
/// made, or have the date wrong. Times that were not requested cause no warning.
pub fn warn_of_past_times(task: &str, times: &TaskTimes, now: &Zoned, violations: &mut Violations) {
    let (start, end, end_field) = match times.slot {
        Some(slot) => (Some(slot.after), Some(slot.before), "time_slot"),
        None => (None, times.before, "before"),
    };
    let start_field = if times.after.is_some() {
        "after"
    } else {
        end_field
    };
    let start = times.after.or(start);
    let is_past = |instant: &Timestamp| *instant < now.timestamp();
    let (field, what, instant) = match (end.filter(is_past), start.filter(is_past)) {
        (Some(end), _) => (end_field, "is in the past: it ended at", end),
        (None, Some(start)) => (start_field, "is partly in the past: it began at", start),
        (None, None) => return,
    };
    let description = format!("{what} {}", shown(instant, now.time_zone()));
    violations.warn(format!("{task}.{field}"), "PAST_TIME", description);
}

/// An instant as the API shows it.
fn shown(instant: Timestamp, zone: &TimeZone) -> String {
    instant
        .to_zoned(zone.clone())
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string()
}

fn earlier(instant: Timestamp, by: SignedDuration) -> Option<Timestamp> {
    instant.checked_sub(by).ok()
}

#[cfg(test)]
mod tests;
