//! What a store offers now: its time slot and the places already taken. One look serves the
//! list of choices and the check of what is chosen.

use std::{collections::HashMap, sync::Arc};

use domain::{
    delivery::Booking, id::TimeSlotId, store::Store, task::TimeWindow, time_slot::TimeSlot,
    violation::Violations,
};
use jiff::Zoned;

use super::{Core, drafts::Times, in_force::Freshness};
use storage::slot_bookings;

use crate::error::Error;

pub(super) struct Offer {
    pub(super) id: TimeSlotId,
    time_slot: Arc<TimeSlot>,
    taken: HashMap<TimeWindow, u32>,
}

impl Core {
    /// None for a store without time slot.
    pub(super) async fn offer(
        &self,
        store: &Store,
        freshness: Freshness,
    ) -> Result<Option<Offer>, Error> {
        let Some((id, time_slot)) = self.time_slot(store, freshness).await? else {
            return Ok(None);
        };
        let taken = if time_slot.capacity().is_some() {
            let reader = self.storage.reader();
            slot_bookings::counts(reader, (store.id, id), self.clock.now()).await?
        } else {
            HashMap::new()
        };
        Ok(Some(Offer {
            id,
            time_slot,
            taken,
        }))
    }

    /// What to tell a client whose slot was taken by another between the check and the booking.
    pub(super) async fn slot_is_full(&self, store: &Store, window: TimeWindow) -> Error {
        let mut violations = Violations::new();
        let times = Times {
            slot: Some(window),
            ..Times::default()
        };
        match self.offer(store, Freshness::Current).await {
            Ok(Some(offer)) => offer.check("dropoff", &times, &self.now_in(store), &mut violations),
            Ok(None) => {}
            Err(error) => return error,
        }
        violations.add("dropoff.time_slot", REFUSED, "all its places are taken");
        Error::Invalid(violations)
    }
}

const REFUSED: &str = "TIME_SLOT_REFUSED";

impl Offer {
    pub(super) fn choices(&self, now: &Zoned) -> Vec<TimeWindow> {
        self.time_slot.choices(now, |window| self.taken(window))
    }

    /// A store may accept only the slots it offers.
    pub(super) fn check(
        &self,
        task: &str,
        times: &Times,
        now: &Zoned,
        violations: &mut Violations,
    ) {
        let Some(window) = times.slot.filter(|_| self.time_slot.offered_only()) else {
            return;
        };
        let refusal = self
            .time_slot
            .refuses(window, now, |window| self.taken(window));
        if let Some(refusal) = refusal {
            violations.add(format!("{task}.time_slot"), REFUSED, refusal.to_string());
        }
    }

    /// The place that a delivery in a slot takes, where places are counted, and how many the
    /// slot has.
    pub(super) fn booking(&self, slot: Option<TimeWindow>) -> Option<(Booking, u32)> {
        let booking = Booking {
            time_slot_id: self.id,
            window: slot?,
        };
        Some((booking, self.time_slot.capacity()?))
    }

    fn taken(&self, window: TimeWindow) -> u32 {
        self.taken.get(&window).copied().unwrap_or(0)
    }
}
