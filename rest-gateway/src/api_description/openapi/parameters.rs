//! Query, path and header parameters.

use serde_json::{Value, json};

use crate::{
    api_description::{
        classes::{self, TypeName},
        operations::{self, Operation, Parameter},
    },
    representation::{
        error_codes,
        violation_codes::{VIOLATIONS, WARNINGS, codes},
    },
    resources::docs_page::FILES,
};

/// The parameters of an operation.
pub(super) fn of(operation: &Operation) -> Vec<Value> {
    let in_path = operation
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            operations::parameter(name).expect("a test finds every parameter that a path names")
        });
    let all = in_path.chain(operation.parameters.iter().copied());
    let if_none_match = json!({"$ref": "#/components/parameters/If-None-Match"});
    let conditional = operation.has_etag().then_some(if_none_match);
    all.map(describe).chain(conditional).collect()
}

fn describe(parameter: &Parameter) -> Value {
    let mut described = json!({
        "name": parameter.name,
        "in": parameter.location,
        "description": parameter.description,
        "schema": parameter.schema,
    });
    if parameter.is_repeatable {
        described["style"] = json!("form");
        described["explode"] = json!(true);
        described["schema"] = json!({"type": "array", "items": described["schema"]});
    }
    if parameter.location == "path" {
        described["required"] = json!(true);
        if let Some(values) = path_values(&parameter.name) {
            described["schema"]["enum"] = json!(values);
        }
    }
    described
}

/// The possible values of a path parameter; none if they are not a closed set.
fn path_values(name: &str) -> Option<Vec<&'static str>> {
    match name {
        "name" => {
            let with_context = |class: &&classes::Class| class.type_name != TypeName::None;
            let classes = classes::ALL.iter().filter(with_context);
            Some(classes.map(|class| class.name.as_str()).collect())
        }
        "code" => {
            let violations = [codes(&VIOLATIONS), codes(&WARNINGS)].concat();
            let mut codes = [error_codes::CODES, &violations].concat();
            codes.sort_unstable();
            codes.dedup();
            Some(codes)
        }
        // Not `file`: generators rename an enum of that name.
        "asset" => Some(FILES.iter().map(|(name, ..)| *name).collect()),
        _ => None,
    }
}
