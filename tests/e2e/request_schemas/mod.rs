//! The OpenAPI document permits exactly the requests that the platform accepts, as far as a schema
//! can say: at the edge of every limit, empty, blank and null.

mod actions;
mod deliveries;
mod parameters;
