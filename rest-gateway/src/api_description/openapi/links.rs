//! Links: the operations that take the ids of a successful response.

use serde_json::{Map, Value, json};

use crate::api_description::{
    classes::{self, Class, Range},
    operations::{self, HydraTarget, Operation, Returns},
};

/// The links of an operation's response: to the operations on the resource it creates or the first
/// one it lists, and on the resources embedded in that one.
pub(super) fn of(operation: &Operation) -> Map<String, Value> {
    let (class, pointer) = match &operation.returns {
        Returns::Created(class) => (class, ""),
        Returns::Collection(class) => (class, "/hydra:member/0"),
        _ => return Map::new(),
    };
    let mut links: Map<_, _> = to_operations_on(class, "", pointer).collect();
    for field in &class.fields {
        if let Range::Object(embedded) = &field.range {
            let embedded = classes::find(embedded);
            let prefix = format!("{}.", field.name);
            let pointer = format!("{pointer}/{}", field.name);
            links.extend(to_operations_on(embedded, &prefix, &pointer));
        }
    }
    links
}

/// A link to each operation on a resource of a class, named by a prefix and the operation's id. The
/// pointer locates the resource in the response.
fn to_operations_on(
    class: &Class,
    prefix: &str,
    pointer: &str,
) -> impl Iterator<Item = (String, Value)> {
    operations_on(class).map(move |operation| {
        let link = json!({
            "operationId": operation.operation_id,
            "parameters": {"id": format!("$response.body#{pointer}/id")},
            "description": operation.summary,
        });
        (format!("{prefix}{}", operation.operation_id), link)
    })
}

/// The operations whose path begins with that of the class's resources, such as
/// `/api/tasks/{id}/done`.
fn operations_on(class: &Class) -> impl Iterator<Item = &'static Operation> {
    let is_target = |operation: &&Operation| matches!(operation.target, HydraTarget::Resource(target) if target.name == class.name);
    let path = operations::all()
        .filter(is_target)
        .map(|operation| operation.path.as_str())
        .find(|path| path.ends_with("/{id}"));
    operations::all()
        .filter(move |operation| path.is_some_and(|path| operation.path.starts_with(path)))
}
