//! The windows of a store's time slot that can be booked now. One read serves both the list of
//! choices and the check of a requested window.

use std::{collections::HashMap, sync::Arc};

use domain::{
    delivery::Booking, delivery_window::TaskTimes, store::Store, task::TimeWindow,
    time_slot::TimeSlot, violation::Violations,
};
use jiff::Zoned;
use process::clock::Clock;

use super::{definitions::Definitions, freshness::Freshness};
use storage::{Storage, slot_bookings, time_slots::StoredTimeSlot};

use crate::error::Error;

pub(super) struct SlotAvailability {
    pub(super) stored: Arc<StoredTimeSlot>,
    time_slot: Arc<TimeSlot>,
    booked: HashMap<TimeWindow, u32>,
}

/// Reads which windows can be booked.
pub(super) struct Slots {
    pub(super) storage: Arc<Storage>,
    pub(super) definitions: Arc<Definitions>,
    pub(super) clock: Clock,
}

impl Slots {
    /// None for a store without time slot.
    pub(super) async fn availability(
        &self,
        store: &Store,
        freshness: Freshness,
    ) -> Result<Option<SlotAvailability>, Error> {
        let Some(current) = self.definitions.time_slot(store, freshness).await? else {
            return Ok(None);
        };
        let (stored, time_slot) = (current.stored, current.rules);
        let booked = if time_slot.capacity.is_some() {
            let reader = self.storage.reader();
            slot_bookings::counts(reader, (store.id, stored.id), self.clock.now()).await?
        } else {
            HashMap::new()
        };
        Ok(Some(SlotAvailability {
            stored,
            time_slot,
            booked,
        }))
    }
}

impl SlotAvailability {
    pub(super) fn choices(&self, now: &Zoned) -> Vec<TimeWindow> {
        self.time_slot.choices(now, |window| self.booked(window))
    }

    /// Checks the times of a pickup, which needs no window.
    pub(super) fn check_pickup(&self, times: &TaskTimes, now: &Zoned, violations: &mut Violations) {
        self.check_window("pickup", times, now, violations);
    }

    /// Checks the times of a dropoff, which must have a window if the store requires one.
    pub(super) fn check_dropoff(
        &self,
        times: &TaskTimes,
        now: &Zoned,
        violations: &mut Violations,
    ) {
        if times.slot.is_none()
            && let Some(missing) = self
                .time_slot
                .missing_slot(now, |window| self.booked(window))
        {
            let missing = missing.to_string();
            violations.add("dropoff.time_slot", "TIME_SLOT_REQUIRED", missing);
        }
        self.check_window("dropoff", times, now, violations);
    }

    /// Checks a requested window if the store accepts only offered ones.
    fn check_window(
        &self,
        task: &str,
        times: &TaskTimes,
        now: &Zoned,
        violations: &mut Violations,
    ) {
        let Some(window) = times.slot.filter(|_| self.time_slot.offered_only()) else {
            return;
        };
        let rejection = self
            .time_slot
            .rejection(window, now, |window| self.booked(window));
        if let Some(rejection) = rejection {
            violations.add(
                format!("{task}.time_slot"),
                "TIME_SLOT_REFUSED",
                rejection.to_string(),
            );
        }
    }

    /// The booking of a window and the capacity of the slot; none if the capacity is unlimited.
    pub(super) fn booking(&self, slot: Option<TimeWindow>) -> Option<(Booking, u32)> {
        let booking = Booking {
            time_slot_id: self.stored.id,
            window: slot?,
        };
        Some((booking, self.time_slot.capacity?))
    }

    fn booked(&self, window: TimeWindow) -> u32 {
        self.booked.get(&window).copied().unwrap_or(0)
    }
}
