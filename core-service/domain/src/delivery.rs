//! Deliveries: one pickup and one dropoff. `lifecycle` has the rules for changing them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::{
    courier::ListKey,
    id::{DeliveryId, StoreId, TaskId, TimeSlotId},
    money::Price,
    named_enum::named_enum,
    task::{Task, TaskKind, TimeWindow},
    tracking::TrackingLink,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_rounded_and_saturates() {
        for (quantity, expected) in [(0.4, 0), (0.5, 1), (1e30, u32::MAX), (-1.0, 0)] {
            let route = Route::rounded(quantity, 7.0, DistanceSource::Osrm);
            assert_eq!(
                (route.distance_meters, route.duration_seconds),
                (expected, 7)
            );
            let route = Route::rounded(7.0, quantity, DistanceSource::Osrm);
            assert_eq!(
                (route.distance_meters, route.duration_seconds),
                (7, expected)
            );
        }
    }
}
