//! One file per resource: its JSON shape, its call to core, nothing else.

pub(crate) mod tokens;

pub(crate) mod deliveries;
pub(crate) mod me;
pub(crate) mod notifications;
pub(crate) mod retail_prices;
pub(crate) mod stores;
pub(crate) mod tasks;
pub(crate) mod time_slots;
pub(crate) mod webhook_tests;
pub(crate) mod webhooks;

mod addresses;
mod credentials;
pub(crate) mod delivery_draft;
mod delivery_filters;

pub(crate) mod contexts;
pub(crate) mod docs_page;
pub(crate) mod entrypoint;
pub(crate) mod error_pages;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod settings;
