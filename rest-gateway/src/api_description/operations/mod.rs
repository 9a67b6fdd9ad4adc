//! The table of the API's operations: the gateway serves these and, in the demo, `DEMO`.

mod api;
mod deliveries;
mod error_codes;
mod operation;
mod parameters;
mod stores;
mod webhooks;

pub(crate) use api::DEMO;
pub(super) use error_codes::error_codes_by_status;
pub(super) use operation::{Auth, HydraTarget};
pub(crate) use operation::{Expects, Operation, Returns};
pub(super) use parameters::Parameter;

/// Every operation, by tag, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Operation> {
    [
        api::ACCESS_TOKENS,
        deliveries::DELIVERIES,
        deliveries::TASKS,
        deliveries::RETAIL_PRICES,
        stores::TIME_SLOTS,
        webhooks::WEBHOOKS,
        webhooks::NOTIFICATIONS,
        webhooks::EVENTS,
        stores::STORES,
        api::API,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hydra_documentation_lists_every_resource_and_no_other() {
        const DOCUMENTATION_PATHS: [&str; 3] = ["/api", "/api/contexts/{name}", "/api/docs.jsonld"];

        for operation in all() {
            let is_resource =
                !operation.returns.is_fixed() && !DOCUMENTATION_PATHS.contains(&operation.path);
            let is_listed = !matches!(operation.target, HydraTarget::None);

            assert_eq!(is_listed, is_resource, "{}", operation.operation_id);
        }
    }
}
