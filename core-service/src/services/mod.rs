//! The gRPC services, a file or folder for each of `proto`: authenticate → parse → decide → store → reply.

pub(crate) mod addresses;
pub(crate) mod api_clients;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod master_keys;
pub(crate) mod notifications;
pub(crate) mod personal_data;
pub(crate) mod price_lists;
pub(crate) mod retail_prices;
pub(crate) mod signing_keys;
pub(crate) mod stores;
pub(crate) mod tasks;
pub(crate) mod time_slots;
pub(crate) mod tokens;
pub(crate) mod webhooks;
pub(crate) mod zones;
