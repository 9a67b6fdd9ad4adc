//! What creating a delivery, asserting it and calculating its price share: draft → addresses → route →
//! time slot → price.

pub(crate) mod address_geocoder;
pub(crate) mod definitions;
pub(crate) mod planner;
pub(crate) mod quotas;
pub(crate) mod quotes;
pub(crate) mod slot_availability;
pub(crate) mod validation;
