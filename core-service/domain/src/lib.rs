//! The business rules, without I/O: no async, no tonic, no sea-orm, no clock. `now`, randomness
//! and the time zone are arguments; only new ids are generated here, and no rule depends on their
//! value.

pub mod address;
pub mod api_client;
pub mod api_secrets;
pub mod before;
pub mod brand;
pub mod courier;
pub mod courier_lists;
pub mod coverage;
pub mod definition;
pub mod delivery;
pub mod delivery_search;
pub mod device_clock;
pub mod event;
#[cfg(test)]
mod fixture;
pub mod id;
pub mod image;
pub mod incident;
pub mod late_report;
pub mod lifecycle;
pub mod money;
mod named_enum;
pub mod notification;
pub mod price_list;
pub mod quote;
pub mod scheduling;
pub mod signing_key;
pub mod store;
pub mod task;
pub mod task_correction;
pub mod task_event;
pub mod telephone;
pub mod time_slot;
pub mod tracking;
pub mod violation;
pub mod visible;
pub mod webhook;
pub mod webhook_secrets;
pub mod worker;
pub mod zone;
