//! The rows, as they are stored; a file per table. Rows become domain types, and domain types
//! rows, in the aggregates' files beside this folder.

pub(super) mod api_client;
pub(super) mod attempt;
pub(super) mod delivery;
pub(super) mod event;
pub(super) mod event_counter;
pub(super) mod event_sequencer;
pub(super) mod geocode;
pub(super) mod idempotency_key;
pub(super) mod instant;
pub(super) mod json;
pub(super) mod notification;
pub(super) mod price_list;
pub(super) mod retail_price_use;
pub(super) mod signing_key;
pub(super) mod slot_booking;
pub(super) mod store;
pub(super) mod task;
pub(super) mod time_slot;
pub(super) mod webhook;
pub(super) mod zone_set;
