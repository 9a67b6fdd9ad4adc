//! The rules, pure: no async, no tonic, no sea-orm, no clock. `now`, randomness and the zone
//! come in as arguments; only new ids are made here, and nothing depends on their value.

pub mod address;
pub mod api_client;
pub mod before;
pub mod definition;
pub mod delivery;
pub mod event;
pub mod event_log;
pub mod fairness;
pub mod id;
pub mod money;
pub mod notification;
pub mod notification_state;
pub mod price_list;
pub mod retail_price;
pub mod service_area;
pub mod signing_key;
pub mod store;
pub mod task;
pub mod telephone;
pub mod time_slot;
pub mod violation;
pub mod webhook;
pub mod webhook_secrets;
pub mod zone;
