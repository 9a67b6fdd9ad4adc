//! Rows, one module per table, grouped as the schema is. The aggregates' files beside this folder
//! convert them to domain types and back.

mod api_clients;
mod deliveries;
mod events;
mod geography;
pub(super) mod instant;
pub(super) mod json;
mod stores;
mod webhooks;

pub(super) use self::{
    api_clients::{api_client, idempotency_key, platform_secret, signing_key},
    deliveries::{created_bytes, delivery, retail_price_use, slot_booking, task},
    events::{event, event_counter, event_sequencer},
    geography::{geocode, zone_set},
    stores::{price_list, store, time_slot},
    webhooks::{attempt, notification, receiver_host, webhook},
};
