//! The windows of a store's time slot that can be booked now. One read serves both the list of
//! choices and the check of a requested window.

use std::{collections::HashMap, sync::Arc};

use domain::{
    delivery::{Booking, TaskTimes},
    store::Store,
    task::TimeWindow,
    time_slot::TimeSlot,
    violation::Violations,
};
use jiff::Zoned;

use storage::{slot_bookings, time_slots::StoredTimeSlot};

use super::definitions::{CachePolicy, Definitions};
use crate::error::Error;

/// The reason of the warning of a window that is not offered.
pub(crate) const SLOT_NOT_OFFERED: &str = "SLOT_NOT_OFFERED";

pub(crate) struct SlotAvailability {
    pub(crate) stored: Arc<StoredTimeSlot>,
    time_slot: Arc<TimeSlot>,
    booked: HashMap<TimeWindow, u32>,
}

impl SlotAvailability {
    /// Reads which windows can be booked; none for a store without time slot.
    pub(crate) async fn read(
        definitions: &Definitions,
        store: &Store,
        policy: CachePolicy,
        now: &Zoned,
    ) -> Result<Option<Self>, Error> {
        let Some(current) = definitions.time_slot(store, policy).await? else {
            return Ok(None);
        };
        let (stored, time_slot) = (current.stored, current.rules);
        let booked = if time_slot.capacity.is_some() {
            let reader = definitions.storage.reader();
            slot_bookings::counts(reader, store.id, stored.id, now.timestamp()).await?
        } else {
            HashMap::new()
        };
        Ok(Some(Self {
            stored,
            time_slot,
            booked,
        }))
    }

    pub(crate) fn choices(&self, now: &Zoned) -> Vec<TimeWindow> {
        self.time_slot.choices(now, |window| self.booked(window))
    }

    /// Checks the times of a pickup and of a dropoff, which must have a window if the store requires
    /// one.
    pub(crate) fn check(
        &self,
        pickup: &TaskTimes,
        dropoff: &TaskTimes,
        now: &Zoned,
        violations: &mut Violations,
    ) {
        self.check_window("pickup", pickup, now, violations);
        if dropoff.slot.is_none()
            && let Some(missing) = self
                .time_slot
                .missing_slot(now, |window| self.booked(window))
        {
            violations.add("dropoff.time_slot", "TIME_SLOT_REQUIRED", missing);
        }
        self.check_window("dropoff", dropoff, now, violations);
    }

    /// Checks a requested window: warns of one that is not offered, unless the store accepts only
    /// offered ones.
    fn check_window(
        &self,
        task: &str,
        times: &TaskTimes,
        now: &Zoned,
        violations: &mut Violations,
    ) {
        let is_refused = self.time_slot.offered_only();
        // Of a window in the past there is another warning.
        let is_checked = |window: &TimeWindow| is_refused || window.after >= now.timestamp();
        let Some(rejection) = times.slot.filter(is_checked).and_then(|window| {
            self.time_slot
                .rejection(window, now, |window| self.booked(window))
        }) else {
            return;
        };
        let field = format!("{task}.time_slot");
        if is_refused {
            violations.add(field, "TIME_SLOT_REFUSED", rejection);
        } else {
            violations.warn(field, SLOT_NOT_OFFERED, rejection);
        }
    }

    /// The booking of a window and the capacity of the slot; none if the capacity is unlimited.
    pub(crate) fn booking(&self, slot: Option<TimeWindow>) -> Option<(Booking, u32)> {
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
