//! The operator's commands, each a thin gRPC call with an operator's token.

pub(crate) mod access;
pub(crate) mod address;
pub(crate) mod addresses;
pub(crate) mod clients;
pub(crate) mod definition;
pub(crate) mod explanation;
pub(crate) mod id;
pub(crate) mod keys;
pub(crate) mod prices;
pub(crate) mod refusal;
pub(crate) mod reply;
pub(crate) mod service_area;
pub(crate) mod stores;
pub(crate) mod tasks;
pub(crate) mod time_slots;
pub(crate) mod webhooks;
pub(crate) mod zones;
