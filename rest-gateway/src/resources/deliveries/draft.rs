//! Reads the body that creates or prices a delivery.

use std::{collections::HashMap, mem};

use proto::{
    AddressDraft, DeliveryDraft, LatLng, Package, TaskDraft, iri, limits, task_draft::Address,
};
use serde_json::Value;

use crate::{
    api_description, body_reader::Object, representation::json::Shape, request::Request,
    violations::ViolationCollector,
};

/// Parses a delivery from a JSON body, and collects violations for unreadable members.
pub fn read(body: &[u8], violations: &mut ViolationCollector) -> DeliveryDraft {
    let value = violations.parse(body, Shape::Class(api_description::class("Delivery")));
    from_json(&value, violations)
}

/// Takes the delivery from the body of a request.
pub(crate) fn take(request: &mut Request) -> DeliveryDraft {
    let body = mem::take(&mut request.json);
    from_json(&body, &mut request.violations)
}

fn from_json(value: &Value, violations: &mut ViolationCollector) -> DeliveryDraft {
    let delivery = Object::root(value);
    let mut task = |member| {
        let task = delivery.object(member, member, violations)?;
        Some(read_task(&task, violations))
    };
    DeliveryDraft {
        pickup: task("pickup"),
        dropoff: task("dropoff"),
        external_reference: delivery.text("externalReference", "external_reference", violations),
        retail_price: delivery
            .text("retailPrice", "retail_price", violations)
            .map(|iri| iri::name(&iri).to_owned()),
    }
}

fn read_task(task: &Object<'_>, violations: &mut ViolationCollector) -> TaskDraft {
    TaskDraft {
        address: read_address(task, violations),
        before: task.renamed_text("before", "doneBefore", violations),
        after: task.renamed_text("after", "doneAfter", violations),
        time_slot: task.text("timeSlot", "time_slot", violations),
        comments: task.text("comments", "comments", violations),
        weight: task.integer_in("weight", &limits::WEIGHT, violations),
        packages: read_packages(task, violations),
        tags: read_tags(task, violations),
        metadata: read_metadata(task, violations),
    }
}

fn read_address(task: &Object<'_>, violations: &mut ViolationCollector) -> Option<Address> {
    let field = task.path("address");
    match task.get("address")? {
        Value::String(text) => Some(Address::AddressText(text.clone())),
        value @ (Value::Object(_) | Value::Array(_)) => {
            let address = Object::of(value, field, violations)?;
            let draft = read_address_object(&address, violations);
            Some(Address::AddressDraft(draft))
        }
        other => {
            violations.add_wrong_type(field, "a string or an object", other);
            None
        }
    }
}

fn read_address_object(address: &Object<'_>, violations: &mut ViolationCollector) -> AddressDraft {
    AddressDraft {
        street_address: address.text("streetAddress", "street_address", violations),
        lat_lng: read_location(address, violations),
        place_name: address.text("name", "place_name", violations),
        contact_name: address.text("contactName", "contact_name", violations),
        telephone: match address.get("telephone") {
            // PHP clients send `false` for an empty field.
            Some(Value::Bool(false)) => None,
            _ => address.text("telephone", "telephone", violations),
        },
        description: address.text("description", "description", violations),
        postal_code: address.text("postalCode", "postal_code", violations),
        address_locality: address.text("addressLocality", "address_locality", violations),
        address_country: address.text("addressCountry", "address_country", violations),
    }
}

/// Reads `latLng`, or else `geo`.
fn read_location(address: &Object<'_>, violations: &mut ViolationCollector) -> Option<LatLng> {
    const FIELD: &str = "lat_lng";

    let (point, requirement) = if let Some(value) = address.get("latLng") {
        let numbers = value.as_array().map(Vec::as_slice);
        let point = match numbers {
            Some([latitude, longitude]) => latitude.as_f64().zip(longitude.as_f64()),
            _ => None,
        };
        let requirement = "must be an array of two numbers, latitude then longitude";
        (point, requirement)
    } else {
        let value = address.get("geo")?;
        violations.add_alias(address.path(FIELD), "geo");
        let number = |member: &str| value.get(member).and_then(Value::as_f64);
        let requirement = "must be an object with the numbers `latitude` and `longitude`";
        (number("latitude").zip(number("longitude")), requirement)
    };
    if point.is_none() {
        violations.add(address.path(FIELD), "WRONG_TYPE", requirement);
    }
    point.map(|(latitude, longitude)| LatLng {
        latitude,
        longitude,
    })
}

/// Keeps invalid packages as defaults, so that the indexes in core's violations match the body.
fn read_packages(task: &Object<'_>, violations: &mut ViolationCollector) -> Vec<Package> {
    let elements = task.array("packages", "packages", violations);
    let packages = elements.iter().enumerate().map(|(index, element)| {
        let path = task.path(&format!("packages[{index}]"));
        let Some(package) = Object::of(element, path, violations) else {
            return Package::default();
        };
        // Absent and 0 are the same in the message.
        if package.get("quantity").is_none() {
            let description = limits::QUANTITY.requirement();
            violations.add(package.path("quantity"), "REQUIRED", description);
        }
        let r#type = package.text("type", "type", violations);
        let quantity = package.integer_in("quantity", &limits::QUANTITY, violations);
        Package {
            r#type: r#type.unwrap_or_default(),
            quantity: quantity.unwrap_or_default(),
        }
    });
    packages.collect()
}

/// Reads an array of tags, or one string of tags separated by spaces. Counts them first: a body has room
/// for half a million.
fn read_tags(task: &Object<'_>, violations: &mut ViolationCollector) -> Vec<String> {
    let tags = task.get("tags");
    let count = match tags {
        Some(Value::String(tags)) => tags.split_whitespace().count(),
        Some(Value::Array(elements)) => elements.len(),
        _ => 0,
    };
    if count > limits::MAX_TAGS {
        let message = format!("must be at most {} tags, not {count}", limits::MAX_TAGS);
        violations.add(task.path("tags"), "TOO_MANY", message);
        return Vec::new();
    }
    match tags {
        None => Vec::new(),
        Some(Value::String(tags)) => tags.split_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(elements)) => {
            let tags = elements.iter().enumerate().map(|(index, element)| {
                if !element.is_string() {
                    let path = task.path(&format!("tags[{index}]"));
                    violations.add_wrong_type(path, "a string", element);
                }
                element.as_str().unwrap_or_default().to_owned()
            });
            tags.collect()
        }
        Some(other) => {
            violations.add_wrong_type(task.path("tags"), "an array or a string", other);
            Vec::new()
        }
    }
}

fn read_metadata(
    task: &Object<'_>,
    violations: &mut ViolationCollector,
) -> HashMap<String, String> {
    let mut texts = HashMap::new();
    if let Some(metadata) = task.object("metadata", "metadata", violations) {
        for (key, value) in metadata.members() {
            match value {
                Value::String(text) => {
                    texts.insert(key.clone(), text.clone());
                }
                other => violations.add_wrong_type(metadata.path(key), "a string", other),
            }
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample};
    use serde_json::json;

    use super::*;
    use crate::error::Details;

    #[test]
    fn valid_members_are_read_despite_violations_and_paths_are_those_of_the_body() {
        let body = br#"{"dropoff": {"address": 5, "doneBefore": "tomorrow"}}"#;
        let mut violations = ViolationCollector::default();

        let draft = read(body, &mut violations);

        let dropoff = draft.dropoff.as_ref().unwrap();
        assert_eq!(dropoff.before.as_deref(), Some("tomorrow"));
        let found = violations.to_proto();
        let fields: Vec<_> = found.iter().map(|violation| &violation.field).collect();
        assert_eq!(fields, ["dropoff.address"]);
        assert_eq!(violations.path("dropoff.before"), "dropoff.doneBefore");
        assert_eq!(violations.path("dropoff.time_slot"), "dropoff.timeSlot");
    }

    #[test]
    fn an_old_name_is_read_if_the_new_one_is_absent_or_blank() {
        for (before, read_from_old) in [
            (json!(null), true),
            (json!(" "), true),
            (json!("today"), false),
            (json!(5), false),
        ] {
            let body = json!({"dropoff": {"before": before, "doneBefore": "tomorrow"}});
            let mut violations = ViolationCollector::default();

            let draft = read(body.to_string().as_bytes(), &mut violations);

            let read = draft.dropoff.unwrap().before;
            assert_eq!(read.as_deref() == Some("tomorrow"), read_from_old, "{body}");
        }
    }

    /// Any JSON value, mostly with members that `read` supports.
    fn any_value() -> impl Strategy<Value = Value> {
        let names = sample::select(vec![
            "pickup",
            "dropoff",
            "address",
            "latLng",
            "geo",
            "latitude",
            "telephone",
            "before",
            "doneBefore",
            "timeSlot",
            "weight",
            "packages",
            "type",
            "quantity",
            "tags",
            "metadata",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 8, move |inner| {
            prop_oneof![
                collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                collection::hash_map(names.clone(), inner, 0..8).prop_map(|members| json!(members)),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_unreadable_value_is_a_violation(
            task in any_value(),
        ) {
            let body = json!({ "dropoff": task }).to_string();
            let mut violations = ViolationCollector::default();

            let draft = read(body.as_bytes(), &mut violations);

            // PHP encodes an empty object as `[]`.
            let is_readable = task.is_null() || task.is_object() || task == json!([]);
            prop_assert_eq!(is_readable, violations.to_proto().iter().all(|v| v.field != "dropoff"));
            prop_assert_eq!(
                draft.dropoff.is_some(),
                is_readable && !task.is_null()
            );
            for violation in violations.to_proto() {
                prop_assert!(violation.field.starts_with("dropoff"));
            }
        }

        /// The path of a violation exists in the body, or its parent does.
        #[test]
        fn violations_have_paths_in_the_body(body in any_value()) {
            let mut violations = ViolationCollector::default();
            read(body.to_string().as_bytes(), &mut violations);

            let violations = match violations.check() {
                Ok(()) => return Ok(()),
                Err(error) => error.details,
            };
            let Details::Violations(violations) = violations else {
                panic!("an error without violations");
            };
            for violation in violations {
                let path = violation.path;
                let (parent, _) = path.rsplit_once('.').unwrap_or_default();
                prop_assert!(
                    find(&body, &path).or(find(&body, parent)).is_some(),
                    "{path} is not in {body}"
                );
            }
        }

        #[test]
        fn a_well_formed_task_is_read_unchanged(task in any_task()) {
            let body = json!({ "pickup": to_json(&task), "externalReference": "42" });
            let mut violations = ViolationCollector::default();

            let draft = read(body.to_string().as_bytes(), &mut violations);

            prop_assert_eq!(violations.to_proto(), vec![]);
            prop_assert_eq!(draft.external_reference.as_deref(), Some("42"));
            prop_assert_eq!(draft.pickup, Some(task));
            prop_assert_eq!(draft.dropoff, None);
        }

        #[test]
        fn arbitrary_bytes_cause_no_panic(body in any::<Vec<u8>>()) {
            read(&body, &mut ViolationCollector::default());
        }
    }

    /// The value at a path such as `dropoff.packages[0].type`.
    fn find<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
        path.split(['.', '['])
            .filter(|step| !step.is_empty())
            .try_fold(body, |value, step| match step.strip_suffix(']') {
                Some(index) => value.get(index.parse::<usize>().ok()?),
                None => value.get(step),
            })
    }

    prop_compose! {
        fn any_task()(
            texts in collection::vec(proptest::option::of(any::<String>()), 5),
            weight in any::<Option<i64>>(),
            packages in collection::vec((any::<String>(), any::<u32>()), 0..4),
            tags in collection::vec(any::<String>(), 0..4),
            metadata in collection::hash_map(any::<String>(), any::<String>(), 0..4),
        ) -> TaskDraft {
            let [address, before, after, time_slot, comments] = texts.try_into().unwrap();
            TaskDraft {
                address: address.map(Address::AddressText),
                before,
                after,
                time_slot,
                comments,
                weight,
                packages: packages
                    .into_iter()
                    .map(|(r#type, quantity)| Package { r#type, quantity })
                    .collect(),
                tags,
                metadata,
            }
        }
    }

    fn to_json(task: &TaskDraft) -> Value {
        let address = task.address.as_ref().map(|address| match address {
            Address::AddressText(text) => text,
            Address::AddressDraft(_) => {
                unreachable!("the strategy creates text addresses only")
            }
        });
        let packages = task.packages.iter();
        json!({
            "address": address,
            "before": task.before,
            "after": task.after,
            "timeSlot": task.time_slot,
            "comments": task.comments,
            "weight": task.weight,
            "packages": packages
                .map(|package| json!({ "type": package.r#type, "quantity": package.quantity }))
                .collect::<Vec<_>>(),
            "tags": task.tags,
            "metadata": task.metadata,
        })
    }
}
