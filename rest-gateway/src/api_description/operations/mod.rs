//! The table of the API's operations: the gateway serves these and, in the demo, `DEMO`.

mod error_codes;
mod operation;

use std::sync::LazyLock;

pub(super) use error_codes::error_codes_by_status;
pub(super) use operation::{Auth, HydraTarget, Parameter, parameter};
pub(crate) use operation::{Expects, Operation, Returns};

use super::parse_json;

static OPERATIONS: LazyLock<Vec<Operation>> =
    LazyLock::new(|| parse_json(include_str!("operations.json")));

/// Only the demo serves it, so no document describes it.
pub(crate) static DEMO: LazyLock<Operation> = LazyLock::new(|| {
    parse_json(
        r#"{
            "method": "POST",
            "path": "/api/demo/deliveries/{id}/complete",
            "operationId": "completeDemoDelivery",
            "returns": {"JsonLd": ""}
        }"#,
    )
});

/// Every operation, by tag, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hydra_documentation_lists_every_resource_and_no_other() {
        const DOCUMENTATION_PATHS: [&str; 3] = ["/api", "/api/contexts/{name}", "/api/docs.jsonld"];

        for operation in all() {
            let is_resource = !operation.returns.is_fixed()
                && !DOCUMENTATION_PATHS.contains(&operation.path.as_str());
            let is_listed = !matches!(operation.target, HydraTarget::None);

            assert_eq!(is_listed, is_resource, "{}", operation.operation_id);
        }
    }
}
