//! The use cases: authenticate → parse → decide → store → reply. A file per proto service.

mod address_geocoder;
mod addresses;
mod api_clients;
mod authentication;
mod authenticator;
mod caller;
mod definitions;
mod deliveries;
mod delivery_creation;
mod events;
mod filters;
mod freshness;
mod idempotency;
mod import;
mod key_ring;
mod lookup;
mod master_keys;
mod messages;
mod notifications;
mod pages;
mod personal_data;
mod planning;
mod price_lists;
mod quotas;
mod quotes;
mod retail_prices;
mod retention;
mod signing_keys;
mod slot_availability;
mod stores;
mod tasks;
mod time_slots;
mod tokens;
mod validation;
mod webhook_secrets;
mod webhooks;
mod wiring;
mod zones;

pub(crate) use self::{
    key_ring::{KeyRing, read_or_create as read_or_create_signing_keys},
    notifications::recover_orphaned_leases,
    wiring::wire,
};
