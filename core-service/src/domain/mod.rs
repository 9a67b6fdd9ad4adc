//! The rules, pure: no async, no tonic, no sea-orm, no clock. `now`, randomness and the zone
//! come in as arguments.

pub mod address;
pub mod definition;
pub mod delivery;
pub mod id;
pub mod money;
pub mod task;
pub mod violation;
