//! Changes of a delivery: one transaction changes its tasks, adds to their history, moves its place in a time slot,
//! writes its events and enqueues their notifications.

use std::{collections::BTreeSet, sync::Arc};

use domain::{
    api_client::Scope,
    courier_lists::Places,
    delivery::{Booking, Delivery},
    event::EventName,
    id::{DeliveryId, StoreId, TimeSlotId},
    lifecycle::Refusal,
    store::Store,
    task::{TaskKind, TimeWindow},
    task_event::TaskReport,
    time_slot::TimeSlot,
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use process::clock::Clock;
use storage::{
    Session, courier_lists::PlacedDelivery, notifications::DeliveryChange, slot_bookings,
};
use tonic::Response;

use super::Services;
use crate::{
    auth::caller::Effect,
    error::{Error, LISTS_CHANGED},
    notifications::{PendingDispatch, Streams},
    planning::definitions::CachePolicy,
};

/// The reason of the conflict of a command that a task's state does not permit.
pub(super) const TASK_STATE: &str = "TASK_STATE";

/// That of a change of a task that has left the courier's list.
pub(super) const NOT_ASSIGNED: &str = "NOT_ASSIGNED";

/// Changes deliveries within a transaction.
#[derive(Clone)]
pub(super) struct DeliveryWriter {
    /// Of slots, and of the times in errors.
    zone: TimeZone,
    pub(super) slot: Option<LimitedSlot>,
    pub(super) report: TaskReport,
    now: Timestamp,
    clock: Clock,
    streams: Arc<Streams>,
}

/// The store's time slot, if its capacity is limited.
#[derive(Clone)]
pub(super) struct LimitedSlot {
    id: TimeSlotId,
    rules: Arc<TimeSlot>,
    capacity: u32,
    /// Whether the request names its window as a time slot, which is booked even if it is not offered.
    is_requested: bool,
}

/// A delivery after a change.
pub(super) struct Changed {
    pub(super) delivery: Delivery,
    /// `None` if there was nothing to change.
    pub(super) events: Option<WrittenEvents>,
}

pub(super) struct WrittenEvents {
    names: Vec<EventName>,
    pending_dispatch: PendingDispatch,
}

impl DeliveryWriter {
    pub(super) fn new(services: &Services, zone: TimeZone, report: TaskReport) -> Self {
        Self {
            zone,
            slot: None,
            report,
            now: services.clock.now(),
            clock: services.clock.clone(),
            streams: Arc::clone(&services.queue.streams),
        }
    }

    /// Applies a change, which gets its time and returns its events, `None` if there is nothing to change. Returns
    /// `None` if the delivery does not exist.
    pub(super) async fn change(
        &self,
        transaction: &Session,
        store_id: StoreId,
        id: DeliveryId,
        change: impl FnOnce(&mut Delivery, Timestamp) -> Result<Option<Vec<EventName>>, Refusal>,
    ) -> Result<Option<Changed>, Error> {
        // The lock serializes the changes of one delivery: each sees those before it.
        let found = storage::deliveries::find_and_lock(transaction, store_id, id).await?;
        let Some(before) = found else {
            return Ok(None);
        };
        let now = time_of_change(&before, self.now);
        let mut delivery = before.clone();
        let events = change(&mut delivery, now).map_err(|why| refused(why, &before, &self.zone))?;
        let Some(names) = events else {
            let events = None;
            return Ok(Some(Changed { delivery, events }));
        };

        let window = delivery.dropoff.window;
        let is_requested = self
            .slot
            .as_ref()
            .is_some_and(|slot| slot.is_requested && slot.rules.defines(window, &self.zone));
        let places = delivery.rebook(&before, is_requested, |window| self.find_slot(window));
        let order = |booking: Booking| (booking.window.after, booking.window.before);
        let takes_first = places.taken.map(order) < places.released.map(order);
        // In one order for all: otherwise two changes could wait for each other's slot.
        if let Some(booking) = places.taken.filter(|_| takes_first) {
            self.book(transaction, store_id, booking).await?;
        }
        if let Some(booking) = places.released {
            slot_bookings::release(transaction, store_id, booking).await?;
        }
        if let Some(booking) = places.taken.filter(|_| !takes_first) {
            self.book(transaction, store_id, booking).await?;
        }
        let history = self.report.events(&before, &delivery, now);
        let change = DeliveryChange {
            store_id,
            delivery_id: id,
            changes: storage::deliveries::changes(&before, &delivery, &history)?,
            events: names.clone(),
        };
        // By the clock: notifications are due by it, and webhooks are disabled by it. Read after the lock: the sequencer
        // numbers events by it, and those of a delivery in the order of its changes.
        let now = self.clock.now();
        let pending_dispatch = self.streams.enqueue(transaction, change, now).await?;
        let events = Some(WrittenEvents {
            names,
            pending_dispatch,
        });
        Ok(Some(Changed { delivery, events }))
    }

    /// Gives tasks of deliveries, which the transaction has locked, their places, by a fixed number of statements.
    /// Returns `None` if there was nothing to change.
    pub(super) async fn place(
        &self,
        transaction: &Session,
        deliveries: &BTreeSet<(StoreId, DeliveryId)>,
        places: &Places,
    ) -> Result<Option<WrittenEvents>, Error> {
        let keys = deliveries.iter().copied();
        let mut found = storage::deliveries::find_all(transaction, keys).await?;
        found.sort_by_key(|delivery| (delivery.store_id, delivery.id));
        let mut changes = Vec::new();
        for before in found {
            let now = time_of_change(&before, self.now);
            let mut after = before.clone();
            let events = after.place(places, now);
            let events = events.map_err(|why| refused(why, &before, &self.zone))?;
            changes.extend(events.map(|events| PlacedDelivery {
                history: self.report.events(&before, &after, now),
                before,
                after,
                events,
            }));
        }
        if changes.is_empty() {
            return Ok(None);
        }
        // After the locks, as in `change`.
        let now = self.clock.now();
        let notifications = storage::courier_lists::place(transaction, &changes, now).await?;
        let pending_dispatch = self.streams.insert(transaction, notifications, now).await?;
        Ok(Some(WrittenEvents {
            names: changes.into_iter().flat_map(|of| of.events).collect(),
            pending_dispatch,
        }))
    }

    fn find_slot(&self, window: TimeWindow) -> Option<TimeSlotId> {
        let slot = self.slot.as_ref()?;
        let is_slot = slot.is_requested || slot.rules.defines(window, &self.zone);
        is_slot.then_some(slot.id)
    }

    async fn book(
        &self,
        transaction: &Session,
        store_id: StoreId,
        booking: Booking,
    ) -> Result<(), Error> {
        let slot = self.slot.as_ref();
        let capacity = slot
            .filter(|slot| slot.id == booking.time_slot_id)
            // Its capacity is no longer limited.
            .map_or(u32::MAX, |slot| slot.capacity);
        if slot_bookings::book(transaction, store_id, booking, capacity).await? {
            return Ok(());
        }
        let message = "the time slot of the dropoff is fully booked".to_owned();
        Err(Error::Conflict("SLOT_FULL", message))
    }
}

impl Services {
    /// The store's time slot, if its capacity is limited.
    pub(super) async fn find_limited_slot(
        &self,
        store: &Store,
        is_requested: bool,
    ) -> Result<Option<LimitedSlot>, Error> {
        let current = self.definitions().time_slot(store, CachePolicy::Bypass);
        let Some(current) = current.await? else {
            return Ok(None);
        };
        Ok(current.rules.capacity.map(|capacity| LimitedSlot {
            id: current.stored.id,
            rules: current.rules,
            capacity,
            is_requested,
        }))
    }

    /// What a command has done, after its commit. Dispatches its events.
    pub(super) fn finish<M>(
        &self,
        response: &Response<M>,
        events: Option<WrittenEvents>,
    ) -> Effect {
        let effect = match (Effect::of(response), &events) {
            (Effect::Changed, None) => Effect::Unchanged,
            (effect, _) => effect,
        };
        if let Some(events) = events {
            self.dispatch(events);
        }
        effect
    }

    /// Counts events and dispatches their notifications. To be called after the commit.
    pub(super) fn dispatch(&self, events: WrittenEvents) {
        for name in events.names {
            let counter = match name {
                EventName::DeliveryCompleted => &self.metrics.deliveries_completed,
                EventName::DeliveryCancelled => &self.metrics.deliveries_cancelled,
                _ => continue,
            };
            counter.inc();
        }
        self.queue.streams.dispatch(events.pending_dispatch);
    }
}

/// Later than the changes before, also those by a core whose clock is ahead: it orders the history of a delivery.
pub(super) fn time_of_change(before: &Delivery, now: Timestamp) -> Timestamp {
    let earlier = before.pickup.updated_at.max(before.dropoff.updated_at);
    let next = earlier.saturating_add(SignedDuration::from_micros(1));
    now.max(next.unwrap_or(earlier))
}

/// The error for a refused command, in the words of its caller. Times are in the store's zone.
pub(super) fn refused(refusal: Refusal, delivery: &Delivery, zone: &TimeZone) -> Error {
    match refusal {
        Refusal::Forbidden => Error::Forbidden {
            scope: Scope::Dispatch,
        },
        Refusal::State(kind) => Error::Conflict(TASK_STATE, state_of(delivery, kind, zone)),
        Refusal::Completed(kind) => {
            let state = state_of(delivery, kind, zone);
            Error::Conflict(TASK_STATE, format!("{refusal}: {state}"))
        }
        Refusal::NotAssigned => Error::Conflict(NOT_ASSIGNED, refusal.to_string()),
        Refusal::Moved => Error::Conflict(LISTS_CHANGED, refusal.to_string()),
        Refusal::Erased => Error::Conflict("ERASED", refusal.to_string()),
        Refusal::NeedsBoth => Error::invalid("both", "REQUIRED", refusal.to_string()),
        Refusal::OutOfOrder => Error::invalid("before", "OUT_OF_ORDER", refusal.to_string()),
        Refusal::OutOfRange => Error::invalid("before", "ABSURD_TIME", refusal.to_string()),
    }
}

/// A task's state, since when, and what set it.
fn state_of(delivery: &Delivery, kind: TaskKind, zone: &TimeZone) -> String {
    let task = delivery.task(kind);
    let (kind, by) = (kind.as_str(), task.state_set_by.as_str());
    let state = task.state.name().as_str().to_ascii_uppercase();
    let since = task.state_since.to_zoned(zone.clone());
    let since = since.strftime("%Y-%m-%dT%H:%M:%S%:z");
    format!("the {kind} is {state} since {since}, set by {by}")
}
