//! What the gateway serves: for each REST resource, its JSON representation and its calls to core;
//! pages, health checks and descriptions of the API.

pub(crate) mod tokens;

pub(crate) mod deliveries;
pub(crate) mod failure_reasons;
pub(crate) mod images;
pub(crate) mod incidents;
pub(crate) mod me;
pub(crate) mod retail_prices;
pub(crate) mod stores;
pub(crate) mod task_assignment;
pub(crate) mod task_commands;
pub(crate) mod task_events;
pub(crate) mod task_incidents;
pub(crate) mod tasks;
pub(crate) mod time_slots;
pub(crate) mod webhooks;

pub(crate) mod docs_page;
pub(crate) mod error_pages;
pub(crate) mod events;
pub(crate) mod health;
mod page_files;
pub(crate) mod self_description;
pub(crate) mod tracking;
